"""Puts the playground together: its page, the simulator for it, the texts that it offers, and what is kept for use offline."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import string
import zlib

from shared import ROOT, printed, run

SOURCES = ROOT / "sim/playground"
# Bytes of all that the page loads, compressed.
MOST = 3_000_000


def scripts(folder):
    """Builds the scripts from a copy of the sources. Returns the copy: what it has is in `dist`."""
    copy = folder / "playground"
    shutil.copytree(SOURCES, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist", "*.tgz"))
    run("npm", "ci", "--no-audit", "--no-fund", "--silent", cwd=copy)
    for script in ["check", "build"]:
        run("npm", "run", "--silent", script, cwd=copy)
    # What is bundled is others' work, whose licences want to be named beside it.
    inputs = json.loads((copy / "dist/inputs.json").read_text())["inputs"]
    others = sorted({it[1] for path in inputs if (it := re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", path))})
    texts = []
    for other in others:
        about = json.loads((copy / "node_modules" / other / "package.json").read_text())
        licences = sorted((copy / "node_modules" / other).glob("LICENSE*"))
        texts.append(f"{other} {about['version']}, {about['license']}\n\n" + "\n".join(it.read_text() for it in licences))
    (copy / "dist/notices.txt").write_text(("\n" + "-" * 80 + "\n").join(texts))
    return copy


def allowed(page, tag):
    """Returns how a policy names what a drawing has inside a tag: by its digest, so that nothing else is allowed."""
    found = re.findall(rf'<{tag} nonce="\w+">(.*?)</{tag}>', page, re.S)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(it.encode()).digest()).decode()}'" for it in found)


def link(text, verb=None):
    """Returns the fragment that holds a text, as the page makes it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    words = base64.urlsafe_b64encode(packer.compress(text.encode()) + packer.flush()).decode().rstrip("=")
    return f"#text={words}" + (f"&verb={verb}" if verb else "")


def verb(text):
    """Returns what is asked of a text first: `text` is what `clrsim list --json` or `clrsim run --json` says of it."""
    verbs = {"snapshots": "matrix", "searches": "explore", "mixed_walks": "compare"}
    return next((verb for calls, verb in verbs.items() if text.get(calls)), "run")


def page(out, built, wasm, examples, drawing):
    """Writes the page into a folder. `examples` are chapters with their texts, `drawing` is a page that `clrsim replay` has drawn: all of
    them have the same script and style. Returns the bytes of all that it loads, compressed."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ["page.js", "worker.js", "notices.txt"]:
        shutil.copy(built / "dist" / name, out)
    for name in ["page.css", "offline.js"]:
        shutil.copy(SOURCES / "page" / name, out)
    shutil.copy(wasm, out / "clrsim.wasm")
    (out / "examples.json").write_text(json.dumps(examples, ensure_ascii=False, separators=(",", ":")))
    inside = {tag: allowed(drawing, tag) for tag in ["script", "style"]}
    if not all(inside.values()):
        raise SystemExit("playground: a drawing of clrsim replay has no script and style of its own")
    (out / "index.html").write_text(string.Template((SOURCES / "page/index.html").read_text()).substitute(inside))
    loaded = ["index.html", "page.css", "page.js", "worker.js", "clrsim.wasm", "examples.json"]
    version = hashlib.sha256(b"".join((out / it).read_bytes() for it in [*loaded, "offline.js"])).hexdigest()[:16]
    kept = json.dumps({"version": version, "files": ["./", *loaded]})
    (out / "files.js").write_text(f"self.CLRSIM = {kept};\n")
    weight = sum(len(gzip.compress((out / it).read_bytes(), 9)) for it in [*loaded, "files.js", "offline.js"])
    if weight > MOST:
        raise SystemExit(f"playground: {weight} bytes are loaded, compressed, and {MOST} are allowed")
    return weight


def readme():
    """Returns the first example of the README."""
    return re.search(r"```kdl\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]


def examples(texts):
    """Returns the chapters that the page offers: the README's example, and the gallery. `texts` is what `clrsim list --json` says."""
    first = {"file": "readme/sampler.kdl", "verb": "matrix", "text": readme(),
             "shows": "The README's example: a callback takes a lock, and a sampler walks the stack of the thread that owns it."}
    chapters = {"readme": [first]}
    for it in texts:
        source = (ROOT / "fixtures" / it["file"]).read_text()
        one = {"file": it["file"].removeprefix("gallery/"), "verb": verb(it), "text": source, "shows": it["shows"] or ""}
        chapters.setdefault(it["chapter"], []).append(one)
    return [{"name": name, "texts": its} for name, its in chapters.items()]


def check(site, target):
    """Tests the page of a site in Chromium, and compares it with the program for this system. Prints figures."""
    pictures = [it] if (it := os.environ.get("CLR_SCREENSHOTS")) else []
    run("node", "test/page.mjs", site, target / "quick/clrsim", *pictures, cwd=scripts(target / "site-playground"))


def package(built, wasm, out):
    """Packs the package for npm into a folder. Returns its file."""
    shutil.copy(wasm, built / "dist/clrsim.wasm")
    for file in ROOT.glob("LICENSE-*"):
        shutil.copy(file, built)
    packed = json.loads(printed("npm", "pack", "--json", "--silent", "--pack-destination", out, cwd=built))
    return out / packed[0]["filename"]


def check_package(built, packed):
    """Tests a packed package in Chromium, in pages of somebody else's."""
    run("node", "test/package.mjs", packed, cwd=built)
