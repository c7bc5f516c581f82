"""The links of the built site: each leads to a page and a place that are there, and nothing is fetched."""

import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote

# Attributes whose address the browser fetches by itself.
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("source", "srcset"),
           ("img", "srcset"), ("link", "href"), ("object", "data"), ("embed", "src"), ("video", "src"),
           ("audio", "src"), ("form", "action"), ("use", "href"), ("image", "href")}
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)
# The same in the source of a page.
TAG = re.compile(r"<(script|img|iframe|source|link|object|embed|video|audio|image)\b([^>]*)>", re.I)
ADDRESS = re.compile(r"""\b(?:src|srcset|href|data)\s*=\s*["']?([^"'\s>]+)""", re.I)
STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
# Links that a reader may follow out of the site.
OUTSIDE = ("https://", "mailto:")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Reader(HTMLParser):
    """The ids and the links of a page, and what is wrong with its structure."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.fetched, self.problems = set(), [], [], []
        self.levels, self.open = [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if id := values.get("id"):
            if id in self.ids:
                self.problems.append(f"the id {id} is there twice")
            self.ids.add(id)
        if re.fullmatch(r"h[1-6]", tag):
            level = int(tag[1])
            if level > (self.levels[-1] if self.levels else 0) + 1:
                self.problems.append(f"<{tag}> follows <h{self.levels[-1] if self.levels else 0}>")
            self.levels.append(level)
        for name, value in values.items():
            if (tag, name) in FETCHED and value is not None:
                self.fetched.append(value)
            elif (tag, name) == ("a", "href") and value is not None:
                self.links.append(value)
            elif name == "style" and value:
                self.fetched += [a or b for a, b in STYLE.findall(value)]

    def handle_data(self, data):
        if data.startswith("| ") and self.open[-1:] == ["p"]:
            self.problems.append(f"a row of a table that is none: {data[:40]}")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> ends nothing")


def read(path):
    """Returns what a page has."""
    reader = Reader()
    reader.feed(path.read_text())
    reader.close()
    return reader


class Check:
    """The check of a folder."""

    def __init__(self, site):
        self.site, self.readers, self.problems, self.links = site, {}, [], 0

    def reader(self, path):
        """Returns what a page has, or None if there is no such page."""
        if path not in self.readers:
            file = self.site / path
            is_page = file.is_file() and file.suffix == ".html"
            self.readers[path] = read(file) if is_page else None
        return self.readers[path]

    def target(self, path, address):
        """Returns the problem of an address on a page, or None."""
        self.links += 1
        to, _, fragment = address.partition("#")
        to = unquote(to.partition("?")[0])
        to = posixpath.normpath(posixpath.join(posixpath.dirname(path), to)) if to else path
        if to.startswith("..") or not (self.site / to).is_file():
            return f"{path}: there is no {to} ({address})"
        reader = self.reader(to)
        # The source pages of rustdoc have an id for each line, but none for a range of lines.
        is_lines = re.fullmatch(r"\d+(-\d+)?", fragment)
        if fragment and reader and not is_lines and unquote(fragment) not in reader.ids:
            return f"{path}: {to} has no place {fragment}"
        return None

    def rustdoc_page(self, path):
        """Checks that a page of rustdoc fetches nothing from outside; its links are not ours."""
        for tag in TAG.finditer((self.site / path).read_text()):
            for address in ADDRESS.findall(tag[2]):
                if SCHEME.match(address) and not address.startswith("data:"):
                    self.problems.append(f"{path}: fetches {address}")

    def page(self, path):
        """Checks a page."""
        reader = self.reader(path)
        for address in reader.fetched:
            if SCHEME.match(address) and not address.startswith("data:"):
                self.problems.append(f"{path}: fetches {address}")
            elif not address.startswith("data:"):
                self.problems += filter(None, [self.target(path, address)])
        for address in reader.links:
            if not SCHEME.match(address):
                self.problems += filter(None, [self.target(path, address)])
            elif not address.startswith(OUTSIDE):
                self.problems.append(f"{path}: a link to {address}")
        self.problems += [f"{path}: {problem}" for problem in reader.problems]

    def styles(self):
        """Checks that no style or script names an address outside."""
        for file in [*self.site.rglob("*.css"), *self.site.glob("*.js")]:
            for address in (a or b for a, b in STYLE.findall(file.read_text())):
                if SCHEME.match(address) and not address.startswith("data:"):
                    self.problems.append(f"{file.relative_to(self.site)}: fetches {address}")


def check(site):
    """Returns the number of pages and of links of a site, and the problems."""
    check = Check(site)
    paths = sorted(str(file.relative_to(site)) for file in site.rglob("*.html"))
    for path in paths:
        if path.startswith("api/"):
            check.rustdoc_page(path)
        else:
            check.page(path)
    check.styles()
    return len(paths), check.links, check.problems
