"""(c) 1,000,000 queued tasks: memory and time to ready after a restart, against an empty store's."""

import time

from one_batch import batch
from surroundings import Service, resident_mib

BATCHES, SIZE = 100, 10_000


def restarted(service):
    """Seconds to ready and MiB resident after a restart, once a first request was answered."""
    service.stop()
    took = service.start()
    service.api()("GET", "/v1/sessions/bench")
    return took, resident_mib(service.pid)


def run(scratch):
    with Service(scratch / "queued") as service:
        api = service.api()
        api("PUT", "/v1/sessions/bench", {})
        empty = restarted(service)
        api, body = service.api(), batch(SIZE)
        began = time.monotonic()
        for _ in range(BATCHES):
            api("POST", "/v1/sessions/bench/tasks/batch?return=minimal", body)
        took = time.monotonic() - began
        service.stop()
        stored = sum(path.stat().st_size for path in (scratch / "queued").rglob("*") if path.is_file())
        full = restarted(service)
        counts = service.api()("GET", "/v1/sessions/bench")["taskCounts"]
        if counts["suspended"] != BATCHES * SIZE:
            raise RuntimeError(f"not all there after the restart: {counts}")
        listed = time.monotonic()
        service.api()("GET", "/v1/sessions/bench/tasks?limit=100")
        listed = time.monotonic() - listed
    total = f"{BATCHES * SIZE:,}"
    yield (f"(c) {total} tasks queued in {BATCHES} POSTs", f"{took:.1f} s ({BATCHES * SIZE / took:,.0f} tasks/s)",
           f"{stored / 2**20:,.0f} MiB at rest")
    yield (f"(c) resident memory with {total} queued", f"{full[1]:.1f} MiB", f"empty store {empty[1]:.1f} MiB")
    yield (f"(c) time to ready with {total} queued", f"{full[0] * 1000:.0f} ms", f"empty store {empty[0] * 1000:.0f} ms")
    yield (f"(c) first page of {total} tasks", f"{listed * 1000:.1f} ms", "")
