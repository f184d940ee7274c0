"""(f) 1,000 idle event streams: what each costs in resident memory."""

import resource
import socket
import time

from surroundings import Service, resident_mib

STREAMS, SESSIONS = 1000, 100


def open_stream(port, session):
    stream = socket.create_connection(("127.0.0.1", port), timeout=30)
    stream.sendall(f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                   "Authorization: Bearer dev\r\nAccept: text/event-stream\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        block = stream.recv(4096)
        if not block:
            break
        head += block
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a stream was refused: {head[:300]!r}")
    return stream


def run(scratch):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    with Service(scratch / "streams") as service:
        api = service.api()
        for number in range(SESSIONS):
            api("PUT", f"/v1/sessions/bench-{number}", {})
        before = resident_mib(service.pid)
        began = time.monotonic()
        streams = [open_stream(service.port, f"bench-{number % SESSIONS}") for number in range(STREAMS)]
        took = time.monotonic() - began
        time.sleep(16)  # a heartbeat goes to each, so that what it needs is counted
        after = resident_mib(service.pid)
        for stream in streams:
            stream.close()
    yield (f"(f) {STREAMS:,} idle event streams", f"{after - before:.1f} MiB ({(after - before) * 1024 / STREAMS:.1f} KiB each)",
           f"{before:.1f} MiB before; opened in {took:.2f} s")
