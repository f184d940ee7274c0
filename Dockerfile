# docker build -t urlsessiond .
# docker run -p 8080:8080 -v urlsessiond:/var/lib/urlsessiond -e URLSESSIOND_PUBLIC_URL=http://localhost:8080 urlsessiond
#
# Every flag of `urlsessiond serve` is an environment variable too: --max-transfers is URLSESSIOND_MAX_TRANSFERS.
# URLSESSIOND_PUBLIC_URL has no default: it is where receivers of webhooks reach the service, which only you know.
#
# For --store, the state on a PostgreSQL server: docker build --build-arg PACKAGES=libpq5 -t urlsessiond .

FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends libmicrohttpd-dev libcurl4-openssl-dev libsqlite3-dev zlib1g-dev libpq-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN for program in urlsessiond urlsession; do \
        swift build -c release --static-swift-stdlib --disable-local-rpath --product $program \
        && install -D -t /out .build/release/$program || exit; \
    done

FROM debian:bookworm-slim
# More of Debian's packages.
ARG PACKAGES=
RUN apt-get update \
    && apt-get install -y --no-install-recommends libcurl4 libmicrohttpd12 libsqlite3-0 libgnutls30 libnettle8 zlib1g ca-certificates $PACKAGES \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /var/lib/urlsessiond --shell /usr/sbin/nologin urlsessiond \
    && install -d -o urlsessiond -g urlsessiond -m 0700 /var/lib/urlsessiond
COPY --from=build /out/ /usr/local/bin/
ENV URLSESSIOND_LISTEN=0.0.0.0:8080
ENV URLSESSIOND_DATA_DIR=/var/lib/urlsessiond
# As a number, by which Kubernetes sees that it is not root.
USER 10001
VOLUME /var/lib/urlsessiond
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["urlsessiond", "healthcheck"]
ENTRYPOINT ["urlsessiond"]
CMD ["serve"]
