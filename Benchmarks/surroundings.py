"""What every benchmark needs around it: a scratch directory in memory, an nginx origin, the service, its API."""

import contextlib
import http.client
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVICE = pathlib.Path(os.environ.get("URLSESSIOND", ROOT / ".build/release/urlsessiond"))
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, what, every=0.01):
    """Polls every 10 ms; returns the moment at which the condition held."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain for {what}")
        time.sleep(every)
    return time.monotonic()


def cpu_seconds(pid):
    """User and system time of one process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    release = next((l.split("=", 1)[1].strip().strip('"') for l in open("/etc/os-release") if l.startswith("PRETTY")), "?")
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, {release}, Linux {platform.release()}"


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (" with changes" if git("status", "--porcelain") else "")


def disk_bytes(*folders):
    """The allocated bytes of all files in folders, those with several names once.

    The reserve of a data directory does not count: the service may create it after its start.
    """
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.name == "reserve":
                continue
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(found.values())


class Scratch:
    """A directory that is gone afterwards, on tmpfs unless SCRATCH names another place."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="urlsessiond-bench-", dir=os.environ.get("SCRATCH", "/dev/shm")))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Origin:
    def __init__(self, directory, tree):
        self.directory, self.tree, self.port = directory, tree, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._script("start", self.directory, self.tree, self.port)
        return self

    def __exit__(self, *_):
        self._script("stop", self.directory)

    def end(self):
        """Ends nginx after its last request, so that the log is complete."""
        pid = self.directory / "nginx.pid"
        os.kill(int(pid.read_text()), signal.SIGQUIT)
        wait_until(lambda: not pid.exists(), 60, "the end of nginx")

    def _script(self, *arguments):
        environment = dict(os.environ, ACCESS_LOG=os.environ.get("ACCESS_LOG", "off"))
        subprocess.run([str(ROOT / "scripts/origin"), *map(str, arguments)], check=True, env=environment)


class PostgreSQL:
    """A server of its own, as it comes but for its port and one gigabyte of log at most."""

    def __init__(self, directory):
        self.directory, self.port, self.made = directory, free_port(), 0

    def _run(self, program, *arguments):
        # It refuses to run as root.
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.getuid() == 0 else []
        folder = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        subprocess.run([*user, str(folder / program), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self.directory.mkdir()
        self.directory.chmod(0o755)
        if os.getuid() == 0:
            self.directory.parent.chmod(0o755)
            shutil.chown(self.directory, "postgres", "postgres")
        self._run("initdb", "-D", self.directory / "data", "-A", "trust", "-U", "bench", "--locale=C", "-E", "UTF8")
        self._run("pg_ctl", "-D", self.directory / "data", "-l", self.directory / "log", "-w", "-o",
                  f"-p {self.port} -k {self.directory} -c jit=off", "start")
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "-D", self.directory / "data", "-m", "immediate", "stop")

    def database(self):
        """The address of a new one."""
        self.made += 1
        address = f"postgresql://bench@127.0.0.1:{self.port}"
        subprocess.run(["psql", "-q", "-d", f"{address}/postgres", "-c", f"CREATE DATABASE bench{self.made}"], check=True)
        return f"{address}/bench{self.made}"


class Refused(Exception):
    pass


class API:
    """One kept-alive connection."""

    def __init__(self, port, key="dev", timeout=120):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.key = key

    def __call__(self, method, path, body=None, raw=False, kind="application/json"):
        headers = {"Authorization": f"Bearer {self.key}"}
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = kind
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {data[:500]!r}")
        return data if raw else json.loads(data) if data else None


class Service:
    """`urlsessiond serve --dev` on a data directory; can be stopped and started again on it."""

    def __init__(self, data, *flags):
        self.data, self.flags, self.port = data, flags, free_port()
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Seconds from exec until /readyz answers 200."""
        began = time.monotonic()
        self.log = open(self.data.parent / (self.data.name + ".log"), "ab")
        command = [str(SERVICE), "serve", "--dev", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data)]
        self.process = subprocess.Popen([*command, *self.flags], stdout=self.log, stderr=self.log)
        return wait_until(self._ready, 120, "the service to be ready") - began

    def _ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the service ended with {self.process.returncode}; see {self.log.name}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def kill(self):
        """Ends the process with SIGKILL and starts it again."""
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.start()

    def api(self, key="dev"):
        return API(self.port, key)

    def metric(self, name):
        """The value of one without labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer dev-admin"})
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return float(next(line for line in lines if line.startswith(name + " ")).split()[1])

    @property
    def pid(self):
        return self.process.pid
