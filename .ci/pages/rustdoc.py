"""The documentation of the crates, and Markdown rendered by rustdoc."""

import functools
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
DOC = TARGET / "doc"
# An intra-doc link that rustdoc has left as it was written.
UNRESOLVED = re.compile(r'<a href="(?:clr_\w+|clrsim)::|\[<code>clr_\w+')


@functools.cache
def crates():
    """Returns the crates that have documentation: their names by the folders of their manifests."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = {}
    for package in json.loads(listed)["packages"]:
        folder = str(Path(package["manifest_path"]).parent.relative_to(ROOT))
        for target in package["targets"]:
            if {"lib", "rlib", "cdylib", "staticlib", "bin"} & set(target["kind"]) and target["doc"]:
                named.setdefault(folder, target["name"].replace("-", "_"))
    return named


def document():
    """Documents all crates of the workspace, with links from each to all others."""
    run_doc()
    # rustdoc links to another crate if the crate's folder is there when it begins, and leaves the link as it is
    # written otherwise. Those that began too early are documented again, one after the other: cargo
    # removes the folder of each while it is made.
    early = [name for name in crates().values() if is_unresolved(DOC / name)]
    for name in early:
        (DOC / name / "index.html").unlink()
    if early:
        run_doc("--jobs", "1")


def is_unresolved(folder):
    """Returns true if a page in a folder has a link that rustdoc has left as it was written."""
    return any(UNRESOLVED.search(page.read_text()) for page in folder.rglob("*.html"))


def run_doc(*arguments):
    """Runs `cargo doc` for the workspace; a warning fails."""
    environment = {**os.environ, "RUSTDOCFLAGS": "-D warnings"}
    subprocess.run(["cargo", "doc", "--workspace", "--no-deps", *arguments], cwd=ROOT, check=True, env=environment)


def rendered(files):
    """Returns the HTML of Markdown files, by their paths."""
    pages = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            command = ["rustdoc", "--markdown-no-toc", "--output", folder, ROOT / file]
            subprocess.run(command, cwd=ROOT, check=True)
            page = (Path(folder) / Path(file).with_suffix(".html").name).read_text()
            start = page.index('<h1 class="title">')
            pages[file] = page[start:page.rindex("</body>")]
    return pages
