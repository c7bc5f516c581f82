"""What the scripts beside this file share: the repository, packages of registries, pages of the book."""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def options(description):
    """Returns a parser of options, whose help begins with a description."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def run(*command, **settings):
    """Runs a command in the repository, which must succeed. Returns what it prints, if `stdout` is a pipe."""
    return subprocess.run(command, **{"cwd": ROOT, "check": True, "text": True, **settings}).stdout


def printed(*command, **settings):
    """Returns what a command prints, which must succeed."""
    return run(*command, stdout=subprocess.PIPE, **settings)


def has(program, *packages):
    """Returns true if a program is there, after an attempt to install it from Debian's packages."""
    if not shutil.which(program) and Path("/etc/debian_version").exists() and os.geteuid() == 0:
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages, stdout=sys.stderr, check=False)
    return shutil.which(program) is not None


def fetch(registry, package, version, folder, platform=None):
    """Puts the files of a package into a folder, unless they are there. Returns false if it cannot be had."""
    if (folder / ".complete").exists():
        return True
    only = ["--python-version", "3.11", "--platform", platform] if platform else []
    commands = {
        "pypi": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *only, f"{package}=={version}"],
        "npm": ["npm", "pack", "--silent", f"{package}@{version}"],
        "debian": ["apt-get", "download", "-q", package]}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as packed:
        try:
            run(*commands[registry], cwd=packed, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError):
            return False
        for file in Path(packed).iterdir():
            if registry == "debian":
                run("dpkg-deb", "-x", file, folder)
            else:
                with zipfile.ZipFile(file) if registry == "pypi" else tarfile.open(file) as archive:
                    archive.extractall(folder)
    (folder / ".complete").touch()
    return True


def replace(page, mark, text):
    """Replaces what a page has between the marks `<!-- MARK:begin -->` and `<!-- MARK:end -->`."""
    begin, end = f"<!-- {mark}:begin -->\n", f"<!-- {mark}:end -->"
    before, rest = page.read_text().split(begin, 1)
    page.write_text(f"{before}{begin}{text.rstrip()}\n{end}{rest.split(end, 1)[1]}")
