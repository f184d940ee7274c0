"""What the package must show in a Debian that has no toolchain: it is complete, installs, serves, and goes."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

from debian_root import say
from service_story import ROOT, serve_and_check

STATE = "/var/lib/urlsessiond"
SETTINGS = "/etc/urlsessiond.env"
UNIT = "/usr/lib/systemd/system/urlsessiond.service"
ENABLED = "/etc/systemd/system/multi-user.target.wants/urlsessiond.service"
DOCUMENTS = "/usr/share/doc/urlsessiond"
APT = {"DEBIAN_FRONTEND": "noninteractive"}


def expected_files():
    documents = ["README.md", "SECURITY.md", "openapi.yaml", "examples/receiver.py", "copyright", "changelog.gz",
                 "changelog.Debian.gz", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
                 *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*/*.*")), "Benchmarks/README.md"]
    return {"/usr/bin/urlsessiond", "/usr/bin/urlsession", UNIT, SETTINGS, "/usr/lib/sysusers.d/urlsessiond.conf",
            "/usr/share/man/man8/urlsessiond.8.gz", "/usr/share/man/man1/urlsession.1.gz",
            "/usr/share/bash-completion/completions/urlsession", "/usr/share/zsh/vendor-completions/_urlsession",
            "/usr/share/fish/vendor_completions.d/urlsession.fish", *(f"{DOCUMENTS}/{name}" for name in documents)}


def files_of(package):
    """All files of it, which must all hold something and belong to root."""
    listing = subprocess.run(["dpkg-deb", "--contents", str(package)], check=True, stdout=subprocess.PIPE, text=True).stdout
    files = set()
    for line in listing.splitlines():
        mode, owner, size, _, _, path = line.split(None, 5)
        if mode.startswith("-"):
            files.add(path.removeprefix("."))
        if owner != "root/root" or (mode.startswith("-") and size == "0"):
            sys.exit(f"not as a package's file should be: {line}")
    return files


def check_contents(package):
    missing = expected_files() - files_of(package)
    if missing:
        sys.exit(f"{package.name} lacks {', '.join(sorted(missing))}")
    subprocess.run(["lintian", "--allow-root", "--fail-on", "error", str(package)], check=True)
    say(f"{package.name} is complete, and lintian finds no errors")


def check_beside(package):
    """What a release has beside the package: the digests are right, and the SBOM is valid."""
    folder = package.parent
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], check=True, cwd=folder)
    python = subprocess.run([ROOT / "scripts/venv", "sbom", "spdx-tools==0.8.*"], check=True, stdout=subprocess.PIPE, text=True)
    validator = pathlib.Path(python.stdout.strip()).with_name("pyspdxtools")
    sbom, = folder.glob("*.spdx.json")
    subprocess.run([python.stdout.strip(), validator, "--infile", sbom], check=True)
    say("checksums are right, and the SBOM is valid SPDX")


def unit(root):
    """The unit's settings, each with all its values."""
    settings = {}
    for line in root.at(UNIT).read_text().splitlines():
        if re.match(r"[A-Z]\w*=", line):
            settings.setdefault(line.split("=", 1)[0], []).append(line.split("=", 1)[1])
    return settings


def install(root, package):
    return root.run(f"apt-get install -y --no-install-recommends /tmp/{package.name}", APT)


def check_installed(root):
    for program in "urlsessiond", "urlsession":
        libraries = root.run(["ldd", f"/usr/bin/{program}"])
        if "not found" in libraries or "swift" in libraries:
            sys.exit(f"{program} looks for libraries that are in no Debian package:\n{libraries}")
    root.run(["dpkg", "--verify", "urlsessiond"])
    if not root.at(ENABLED).is_symlink():
        sys.exit("the service would not start with the machine")
    running = [path for path in pathlib.Path("/proc").glob("[0-9]*/root") if links_to(path, root.path)]
    if running:
        sys.exit(f"installing started {running}")


def links_to(path, target):
    try:
        return path.readlink() == target
    except OSError:
        return False


def check_service(root, scratch):
    """By the unit's own command lines, as its user, in its environment."""
    settings = unit(root)
    ids = root.ids(settings["User"][0])
    environment = dict(value.split("=", 1) for value in settings["Environment"])
    if settings["RestartPreventExitStatus"] != ["64"] or "ExecStartPre" in settings:
        sys.exit("the unit would start again and again with settings that have faults")
    serve_and_check(root, shlex.split(settings["ExecStart"][0]), ["urlsessiond", "healthcheck"], environment, ids, scratch)


def check_gone(root, package):
    """Settings survive an upgrade, data a removal; purging takes what is the package's own, and nothing else."""
    neighbour = root.at("/var/lib/neighbour")
    neighbour.write_text("not ours")
    with root.at(SETTINGS).open("a") as settings:
        settings.write("# changed by hand\n")
    root.run(f"dpkg --install /tmp/{package.name}")
    if "changed by hand" not in root.at(SETTINGS).read_text():
        sys.exit("an upgrade overwrote settings")
    root.run("apt-get remove -y urlsessiond", APT)
    if root.at("/usr/bin/urlsessiond").exists() or not root.at(f"{STATE}/urlsessiond.db").exists() or not root.at(SETTINGS).exists():
        sys.exit("removal left the program, or took data or settings")
    said = root.run("apt-get purge -y urlsessiond", APT)
    left = [path for path in {*files_of(package), STATE, ENABLED} if os.path.lexists(root.at(path))]
    if left or f"Removing {STATE}" not in said or neighbour.read_text() != "not ours":
        sys.exit(f"purging left {left}, or said nothing of the data:\n{said}")
    say("an upgrade keeps settings, removal keeps data, purging takes both and says so")


def check_package(base, scratch):
    packages = list((ROOT / ".build/release-files").glob("urlsessiond_*.deb"))
    if len(packages) != 1:
        sys.exit(f"one package is expected, not {packages}; make release")
    package = packages[0]
    check_contents(package)
    check_beside(package)
    root = base.copy(scratch / "package")
    root.at(f"/tmp/{package.name}").write_bytes(package.read_bytes())
    root.run("apt-get update")
    install(root, package)
    check_installed(root)
    check_service(root, scratch / "story")
    check_gone(root, package)

    # Debian's own tool makes the user where it is there.
    root.run("userdel urlsessiond && apt-get install -y --no-install-recommends systemd-standalone-sysusers", APT)
    install(root, package)
    say("installed again, with systemd-sysusers: user", root.ids("urlsessiond"))
