"""Output of `clrsim` for the pages."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import rustdoc


class Tool:
    """The tool, built from the sources."""

    def __init__(self):
        subprocess.run(["cargo", "build", "-q", "--release", "-p", "clrsim"], cwd=rustdoc.ROOT, check=True)
        self.program = rustdoc.TARGET / "release/clrsim"

    def run(self, *arguments):
        """Returns what a command prints."""
        made = subprocess.run([self.program, *arguments], cwd=rustdoc.ROOT, capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"})
        if made.returncode != 0:
            raise SystemExit(f"clrsim {' '.join(map(str, arguments))}: {made.stderr}")
        return made.stdout

    def complaint(self, *arguments):
        """Returns the error that a command prints."""
        made = subprocess.run([self.program, *arguments], cwd=rustdoc.ROOT, capture_output=True, text=True)
        return made.stderr

    def objects(self, *arguments):
        """Returns the objects that a command prints."""
        return [json.loads(line) for line in self.run(*arguments, "--json").splitlines()]


def each(function, items):
    """Returns the results of a function for all items, which the processors share, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))
