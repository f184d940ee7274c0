# To be sourced: starts and stops a service of our own in a directory, and finds free ports.
# After start_service: SERVICE_PID and SERVICE_URL.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
URLSESSIOND=${URLSESSIOND:-$ROOT/.build/release/urlsessiond}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_service DATA_DIR PORT [FLAG…]: returns when /readyz answers 200; the log is DATA_DIR.log.
start_service() {
    local data=$1 port=$2
    shift 2
    local scheme=http
    [[ " $* " = *' --tls-certificate '* ]] && scheme=https
    "$URLSESSIOND" serve --dev --listen "127.0.0.1:$port" --data-dir "$data" "$@" >>"$data.log" 2>&1 &
    SERVICE_PID=$!
    disown "$SERVICE_PID"
    SERVICE_URL=$scheme://127.0.0.1:$port
    for _ in $(seq 300); do
        curl -q -kfsS --noproxy '*' -o /dev/null "$SERVICE_URL/readyz" 2>/dev/null && return 0
        kill -0 "$SERVICE_PID" 2>/dev/null || break
        sleep 0.1
    done
    echo "The service did not become ready; the end of its log:" >&2
    tail -n 20 "$data.log" >&2
    return 1
}

# stop_process PID [SIGNAL]: waits until it is gone, at most 15 s, then kills it.
stop_process() {
    [ -n "${1:-}" ] || return 0
    kill "-${2:-TERM}" "$1" 2>/dev/null || return 0
    for _ in $(seq 300); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.05
    done
    kill -KILL "$1" 2>/dev/null || true
}
