"""(e) From the last byte of a session's last transfer to the arrival of its webhook, 200 sessions one after another.

Origin and receiver are plain sockets in this process, so both moments are read from one clock.
"""

import queue
import socket
import statistics
import threading
import time

from surroundings import Service

RUNS, SIZE = 200, 10 * 1024


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        block = connection.recv(65536)
        if not block:
            return None
        data += block
    head, body = data.split(b"\r\n\r\n", 1)
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return body


class Peer:
    """Answers every request with the same bytes; `moments` gets the time of each request's `mark`."""

    def __init__(self, answer, moment):
        self.answer, self.moment, self.moments = answer, moment, queue.Queue()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while read_request(connection) is not None:
                    arrived = time.monotonic()
                    connection.sendall(self.answer)
                    self.moments.put(arrived if self.moment == "arrived" else time.monotonic())
            except OSError:
                return


def answer(body, kind):
    return (f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def run(scratch):
    origin = Peer(answer(b"x" * SIZE, "application/octet-stream"), "sent")
    receiver = Peer(answer(b'{"completed": true}', "application/json"), "arrived")
    latencies = []
    with Service(scratch / "launches") as service:
        api = service.api()
        api("PATCH", "/v1/app", {"webhook": {"url": receiver.url}})
        # The first is not counted: for 5 s after a start the service waits for apps that were attached before it.
        for number in range(RUNS + 1):
            api("PUT", f"/v1/sessions/bench-{number}", {})
            api("POST", f"/v1/sessions/bench-{number}/tasks", {"kind": "download", "request": {"url": origin.url}})
            sent = origin.moments.get(timeout=30)
            latencies.append((receiver.moments.get(timeout=30) - sent) * 1000)
    origin.listener.close()
    receiver.listener.close()
    latencies = sorted(latencies[1:])
    yield ("(e) last byte to webhook, median", f"{statistics.median(latencies):.1f} ms", f"{RUNS} runs")
    yield ("(e) last byte to webhook, p99", f"{latencies[int(RUNS * 0.99) - 1]:.1f} ms", f"worst {latencies[-1]:.1f} ms")
