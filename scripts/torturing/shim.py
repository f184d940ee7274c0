"""The library before the service: built, told which call to let fail, and read for the calls that it saw."""
import collections
import ctypes
import dataclasses
import errno
import mmap
import os
import pathlib
import re
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "Tests/Faults/fail-once.c"

# Calls that change a file or a folder, or make a change durable.
CHANGES = frozenset("create write pwrite fsync fdatasync ftruncate fallocate posix_fallocate clone copy_file_range mkdir mkdirat "
                    "rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat".split())
# Calls that can find the disk full: those that need blocks or inodes, and syncs of what was not allocated yet.
TAKES_ROOM = CHANGES - {"rmdir", "unlink", "unlinkat"}
MOVES_BYTES = frozenset("read pread write pwrite copy_file_range sendfile".split())
# Calls that the manual pages allow to be interrupted.
INTERRUPTIBLE = frozenset("open create openat2 read pread write pwrite fsync fdatasync ftruncate fallocate "
                          "posix_fallocate".split())

# A fault by its name: what the library does, and the error.
FAULTS = {"kill-before": (1, 0), "kill-after": (2, 0), "EIO": (3, errno.EIO), "ENOSPC": (3, errno.ENOSPC),
          "EINTR": (3, errno.EINTR), "short": (4, 0)}


@dataclasses.dataclass(frozen=True, order=True)
class Call:
    """The n-th call of a class, which is a function and a kind of path."""
    function: str
    path: str
    number: int

    @classmethod
    def parse(cls, text):
        function, path, number = re.fullmatch(r"(\w+):(.+):(\d+)", text).groups()
        return cls(function, path, int(number))

    def __str__(self):
        return f"{self.function}:{self.path}:{self.number}"

    def faults(self):
        """The faults that this call may meet. A kill at a call that changes nothing leaves the files as the change before
        it did, so one of the two is enough there."""
        found = ["kill-before", "kill-after"] if self.function in CHANGES else ["kill-before"]
        found.append("EIO")
        found += ["ENOSPC"] * (self.function in TAKES_ROOM) + ["short"] * (self.function in MOVES_BYTES)
        return found + ["EINTR"] * (self.function in INTERRUPTIBLE)


class Page(ctypes.Structure):
    """`struct control` of the library."""
    _fields_ = [("armed", ctypes.c_uint), ("met", ctypes.c_uint), ("number", ctypes.c_uint), ("fault", ctypes.c_uint),
                ("error", ctypes.c_int), ("call", ctypes.c_char * 256)]


def build(folder):
    """Compiles the library with the clang of the Swift toolchain."""
    swift = shutil.which("swift")
    clang = pathlib.Path(os.path.realpath(swift)).parent / "clang" if swift else None
    compiler = str(clang) if clang and clang.exists() else "cc"
    library = pathlib.Path(folder) / "fail-once.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


class Shim:
    """The library for the processes of one bench. `roots` are the folders whose files count, by name."""

    def __init__(self, library, folder, roots):
        self.control, self.trace = pathlib.Path(folder) / "control", pathlib.Path(folder) / "trace"
        self.control.write_bytes(bytes(4096))
        with open(self.control, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)
        self.page = Page.from_buffer(self.memory)
        self.environment = {"LD_PRELOAD": str(library), "FAIL_ONCE_CONTROL": str(self.control), "FAIL_ONCE_TRACE": str(self.trace),
                            "FAIL_ONCE_ROOTS": ";".join(f"{name}={os.path.realpath(path)}" for name, path in roots.items())}

    def disarm(self):
        """For a process that is about to start."""
        self.page.armed = self.page.met = self.page.fault = 0
        self.trace.write_bytes(b"")

    def arm(self, call=None, fault=None):
        """From now on calls are counted. Without a fault none fails."""
        if call is not None:
            self.page.call = f"{call.function} {call.path}".encode()
            self.page.number, (self.page.fault, self.page.error) = call.number, FAULTS[fault]
        self.page.armed = 1

    @property
    def is_met(self):
        return bool(self.page.met)

    def counts(self):
        """How many calls of each class came since the library was armed."""
        found = collections.Counter()
        for line in self.trace.read_text(errors="replace").splitlines():
            number, function, path = line.removesuffix(" <--").split(" ", 2)
            found[function, path] = max(found[function, path], int(number))
        return found

    def recent(self, lines=25):
        return self.trace.read_text(errors="replace").splitlines()[-lines:]
