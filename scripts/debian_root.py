"""A Debian in a folder, made by debootstrap, and processes in it: what a container has of one, without its engine."""
import pathlib
import re
import shutil
import subprocess
import sys

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def say(*words):
    print("  container", *words, flush=True)


def mirror():
    """That of this machine, unless it is one of snapshots."""
    sources = [*pathlib.Path("/etc/apt").glob("sources.list.d/*"), *pathlib.Path("/etc/apt").glob("sources.list")]
    mirrors = re.findall(r"https?://\S*/debian/?(?=\s|$)", "\n".join(path.read_text() for path in sources))
    return next((m for m in mirrors if "snapshot" not in m), "http://deb.debian.org/debian")


class DebianRoot:
    def __init__(self, path):
        self.path, self.bound = path, []

    @classmethod
    def bootstrap(cls, path, suite):
        subprocess.run(["debootstrap", "--variant=minbase", suite, str(path), mirror()], check=True, stdout=subprocess.DEVNULL)
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
        return cls(path)

    def copy(self, path):
        subprocess.run(["cp", "--archive", "--reflink=auto", str(self.path), str(path)], check=True)
        return DebianRoot(path)

    def bind(self, source, place):
        """Shows a folder of this machine to all commands from now on, read-only."""
        self.at(place).mkdir(parents=True, exist_ok=True)
        self.bound.append((str(source), str(self.at(place))))

    def at(self, place):
        """Where an absolute path of the root is on this machine."""
        return self.path / str(place).lstrip("/")

    def inside(self, command, ids="0:0", folder="/"):
        """With /proc, as every container has it; mounts are gone with the process, in its own mount namespace."""
        mounts = "".join(f"mount --bind -o ro '{source}' '{place}' && " for source, place in self.bound)
        script = mounts + 'mount -t proc proc "$0/proc" && exec chroot "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(self.path),
                f"--userspec={ids}", str(self.path), "env", f"--chdir={folder}", *command]

    def run(self, command, environment={}, **more):
        """What the command says; it must end with 0. A string is for the shell."""
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        done = subprocess.run(self.inside(words, **more), env={"PATH": PATH, "HOME": "/root", **environment},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}")
        return done.stdout

    def ids(self, user):
        """UID:GID of a user, who may be a number, from /etc/passwd."""
        users = [line.split(":") for line in self.at("/etc/passwd").read_text().splitlines()]
        entry = next((entry for entry in users if user in (entry[0], entry[2])), None)
        if entry is None or entry[2] == "0":
            sys.exit(f"the service would run as {user}, who is root or unknown")
        return f"{entry[2]}:{entry[3]}"
