"""Bytes that are a function of a seed, so that the origin and the checker compute any range of them without a copy."""
import functools
import hashlib

BLOCK = 65536


@functools.lru_cache(maxsize=256)
def block(seed, index):
    return hashlib.shake_128(f"{seed}/{index}".encode()).digest(BLOCK)


@functools.lru_cache(maxsize=4096)
def digest_of(seed, length):
    digest = hashlib.sha256()
    for piece in Bytes(length, seed).pieces():
        digest.update(piece)
    return digest.hexdigest()


class Bytes:
    """A content or a body: `length` bytes of a seed, or literal bytes where the API carries them as text."""

    def __init__(self, length, seed=None, literal=None):
        self.length, self.seed, self.literal = length, seed, literal

    @classmethod
    def of(cls, literal):
        return cls(len(literal), literal=literal)

    def slice(self, start, end):
        end = min(end, self.length)
        if start >= end:
            return b""
        if self.literal is not None:
            return self.literal[start:end]
        first, last = start // BLOCK, (end - 1) // BLOCK
        joined = b"".join(block(self.seed, index) for index in range(first, last + 1))
        return joined[start - first * BLOCK:end - first * BLOCK]

    def pieces(self, start=0, end=None, size=BLOCK):
        end = self.length if end is None else min(end, self.length)
        while start < end:
            yield self.slice(start, min(start + size, end))
            start += size

    def all(self):
        return self.slice(0, self.length)

    @property
    def digest(self):
        if self.literal is not None:
            return hashlib.sha256(self.literal).hexdigest()
        return digest_of(self.seed, self.length)

    def __repr__(self):
        return f"{self.length} bytes of {self.seed!r}" if self.literal is None else f"{self.length} literal bytes"


def size(random):
    """A length from 0 to 20 MiB: most are small, some are large enough for segments."""
    ceiling = random.choices([0, 1000, BLOCK, 1 << 20, 4 << 20, 20 << 20], [5, 30, 30, 25, 8, 2])[0]
    return random.randint(0, ceiling)
