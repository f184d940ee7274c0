# To be sourced by the scripts that test: the build, and how steps are run and timed.

. scripts/parts.sh

# Whole modules at once, without what a debugger or an editor needs, in a folder of their own: from clean that is half of
# the work of `swift build --build-tests`. Crash reports still have names of functions.
tests=.build/tests
build=(--scratch-path "$tests" --disable-index-store -Xswiftc -gnone -Xswiftc -whole-module-optimization
    -Xswiftc -num-threads -Xswiftc 2 -Xswiftc -no-emit-module-separately-wmo -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify)
export OPTIMIZE_FOR_TESTS=1
# The programs that are built.
built=$tests/debug

place=$(mktemp -d)
# What tests keep in files lies in memory where there is room: a disk takes a third of a second to make a service's folder.
# At full scale there is too much of it.
room=$(df --output=avail -B 1G /dev/shm 2>/dev/null | tail -n 1)
if [ -z "${TMPDIR:-}${SOAK:-}" ] && [ "${room:-0}" -ge 4 ] && [ -w /dev/shm ]; then
    TMPDIR=$(mktemp -d /dev/shm/urlsessiond-tests.XXXXXX)
    export TMPDIR
    in_memory=$TMPDIR
fi
finish() {
    local status=$?
    [ -s "$place/seconds" ] && { printf '\n== seconds of each step, %d s in all\n' "$SECONDS"; sort -rn "$place/seconds"; }
    # At the end of a long log, where a reader looks first.
    [ -s "$place/failed" ] && { printf '\n== failed\n'; cat "$place/failed"; }
    for other in "${others[@]}"; do kill -- "-$other" 2>/dev/null || true; done
    rm -rf "$place" ${in_memory:+"$in_memory"}
    exit "$status"
}
trap finish EXIT

has_postgresql() { compgen -G "${POSTGRESQL_BIN:-/usr/lib/postgresql/*/bin}/postgres" >/dev/null; }
has_bucket() { [ -x .build/venv/seaweedfs/bin/weed ]; }

# step NAME COMMAND…: runs it, and notes how long it took.
step() {
    local name=$1 began=$SECONDS status=0
    shift
    printf '\n== %s\n' "$name"
    "$@" || status=$?
    printf '%5d %s\n' $((SECONDS - began)) "$name" >>"$place/seconds"
    [ "$status" = 0 ] || { printf '== failed: %s\n' "$name" && echo "$name" >>"$place/failed"; }
    return "$status"
}

# beside COMMAND…: runs it in the background; what it says comes in one piece. `together` waits, and fails with any of them.
others=()
beside() {
    set -m # A group of its own, which an interruption ends.
    (
        status=0
        "$@" >"$place/$BASHPID" 2>&1 </dev/null || status=$?
        cat "$place/$BASHPID"
        exit "$status"
    ) &
    others+=($!)
    set +m
}
together() {
    local other status=0
    for other in "${others[@]}"; do wait "$other" || status=1; done
    others=()
    return "$status"
}

# At full scale the network loses packets, in a namespace of the run's own, with buffers as Linux has them by default. It
# takes root: PostgreSQL does not run as the root of a user namespace.
alone=()
if [ "${SOAK:-}" = 1 ] && [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
    alone=(unshare -n sh -c 'ip link set lo up
        echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem; exec "$@"' sh env PRIVATE_NETWORK=1)
fi

# suites ARGUMENT…: runs those that the test program's arguments choose (--filter, --skip), WIDTH tests at a time (8), within
# LIMIT seconds (900). What passed is counted in the closing line. What failed, or had not ended when the time was over, is
# said once more after all steps. That there are none to run is a failure.
suites() {
    local log
    log=$(mktemp "$place/log.XXXXXX")
    NO_COLOR=1 SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-${WIDTH:-8}} \
        timeout --foreground --signal=INT --kill-after=20 "${LIMIT:-900}" \
        "${alone[@]}" "$built/urlsessiondPackageTests.xctest" --testing-library swift-testing "$@" 2>&1 | tee "$log" |
        sed -u 's/^\(.\{1000\}\).*/\1/' | grep --line-buffered -vE '^(◇ |↳ |✔ (Suite|Test case) |✔ Test "|➜ )' && return
    {
        grep -aE -A 3 '^✘|Fatal error|error: ' "$log" | grep -avE '^(◇|✔|--)' | cut -c 1-600 | tail -n 60
        awk -F '"' '/^◇ Test ".*started\.$/ { open[$2] } /^(✔|✘) Test "/ && !/ recorded / { delete open[$2] }
            END { for (name in open) print "not ended: " name }' "$log"
    } >>"$place/failed"
    return 1
}
