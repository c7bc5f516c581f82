"""The chapters of the book, and the documents of the repository, as pages."""

import posixpath
import re
from pathlib import Path

import markup
import rustdoc
from layout import Page, chain

BOOK = "clr_sim/book"
FORMAT = "clr_scenario/index.html"
# Chapters that other pages of the site contain, with more.
ELSEWHERE = {f"{BOOK}/the_clauses/index.html": "rules/clauses.html"}
# The documents of the repository: their pages, and the groups of these.
DOCUMENTS = {
    "README.md": ("index.html", "Project"),
    "sim/cli/src/schema.md": ("reference/json.html", "Reference"),
    "tests/UNWINDERS.md": ("project/unwinders.html", "Project"),
    "ARCHITECTURE.md": ("project/architecture.html", "Project"),
    "CONTRIBUTING.md": ("project/contributing.html", "Project"),
    "fixtures/README.md": ("project/fixtures.html", "Project"),
    "fuzz/README.md": ("project/fuzzing.html", "Project"),
    "CHANGELOG.md": ("project/changelog.html", "Project"),
}
# Chapters to look things up in.
REFERENCE = ["errors", "the_callbacks", "stability"]
RULES = ["the_evidence"]
CONTRACT = "Contract"
# A heading of the contract that is cited by its number.
CITED = re.compile(r'<h[1-6] id="([^"]+)">(?:<a [^>]*>§</a>)?(?:§([\d.]+)|(E-\d+)) ')
# What rustdoc writes where an item has moved to another module.
MOVED = re.compile(r'http-equiv="refresh" content="0;URL=([^"]+)"')


def modules(page, below):
    """Returns the modules that a rustdoc page links to, in order, as paths of their pages."""
    found = re.findall(r'<a href="([^"#]*index\.html)"', markup.docblock((rustdoc.DOC / page).read_text()))
    paths = [posixpath.normpath(posixpath.join(posixpath.dirname(page), it)) for it in found]
    return [it for it in dict.fromkeys(paths) if it.startswith(below) or it == FORMAT]


class Book:
    """The pages of the book and of the documents, with the addresses of all others."""

    def __init__(self, ids):
        self.ids = ids
        self.chapters = modules(f"{BOOK}/index.html", f"{BOOK}/")
        index = f"{BOOK}/contract/index.html"
        self.contract = [index, *(it for it in modules(index, f"{BOOK}/contract/") if it != index)]
        # The page for each page of rustdoc, and for each file of the repository.
        self.of_doc = {it: self.place(it) for it in [*self.chapters, *self.contract]}
        self.of_doc |= ELSEWHERE | {f"{BOOK}/index.html": "book/index.html"}
        self.of_file = {file: page for file, (page, _) in DOCUMENTS.items()}
        self.of_file |= sources()
        for folder, crate in rustdoc.crates().items():
            self.of_file[folder] = f"api/{crate}/index.html"
        self.crates = set(rustdoc.crates().values())
        ids.sections.update(self.sections())

    @staticmethod
    def place(doc):
        """Returns the path of the page for a chapter."""
        if doc == FORMAT:
            return "reference/text-format.html"
        name = posixpath.dirname(doc).removeprefix(f"{BOOK}/")
        if name == "contract":
            return "contract/index.html"
        folder = "reference" if name in REFERENCE else "rules" if name in RULES else "book"
        name = name.replace("_", "-")
        return f"{name}.html" if name.startswith("contract/") else f"{folder}/{name}.html"

    def sections(self):
        """Returns the addresses of the contract's sections and stacks, by their numbers and ids."""
        found = {}
        for doc in self.contract:
            source = markup.docblock((rustdoc.DOC / doc).read_text())
            for id, number, stack in CITED.findall(source):
                found[number or stack] = f"@/{self.of_doc[doc]}#{id}"
        return found

    def linker(self, base, known):
        """Returns the function that finds addresses for those in a text at the path `base`."""
        def link(href):
            if href.startswith("#"):
                return href
            if crate := re.fullmatch(r"https://docs\.rs/([\w-]+)/?", href):
                name = crate[1].replace("-", "_")
                return f"@/api/{name}/index.html" if name in self.crates else href
            if re.match(r"[a-z]+:", href) and "::" not in href:
                return href
            path, mark, fragment = href.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(base), path))
            found = known(path)
            return f"@/{found}{mark}{fragment}" if found else None
        return link

    def doc_page(self, path):
        """Returns the page of the site for a page of rustdoc."""
        if path in self.of_doc:
            return self.of_doc[path]
        file = rustdoc.DOC / path
        moved = MOVED.search(file.read_text()) if file.is_file() else None
        if moved:
            return self.doc_page(posixpath.normpath(posixpath.join(posixpath.dirname(path), moved[1])))
        return f"api/{path}"

    def rewritten(self, doc):
        """Returns the description on a page of rustdoc as the content of a page."""
        source = markup.docblock((rustdoc.DOC / doc).read_text())
        # The description of a crate may begin before the chapter.
        source = source[source.index("<h2 "):] if "<h2 " in source else source
        ids = self.ids.of_contract() if doc in self.contract else self.ids
        return markup.rewritten(source, self.linker(doc, self.doc_page), ids, shift=1)

    def chapter(self, doc, group):
        """Returns the page of a chapter."""
        made = self.rewritten(doc)
        title = "Text format" if doc == FORMAT else made.title
        return Page(self.of_doc[doc], title, made.html, group, sections=made.sections)

    def pages(self):
        """Returns the pages of the book, of the contract, and of the documents."""
        made = self.rewritten(f"{BOOK}/index.html")
        found = [Page("book/index.html", "The book", made.html, "Book")]
        for doc in self.chapters:
            if doc not in ELSEWHERE and doc not in self.contract:
                folder = self.of_doc[doc].split("/")[0]
                found.append(self.chapter(doc, {"book": "Book", "rules": "Rules"}.get(folder, "Reference")))
        chain([page for page in found if page.group == "Book"])
        contract = [self.chapter(doc, CONTRACT) for doc in self.contract if doc not in ELSEWHERE]
        chain(contract)
        return [*found, *contract, *self.documents()]

    def documents(self):
        """Returns the pages of the documents."""
        pages = []
        for file, source in rustdoc.rendered(DOCUMENTS).items():
            made = markup.rewritten(source, self.linker(file, self.of_file.get), self.ids)
            path, group = DOCUMENTS[file]
            pages.append(Page(path, made.title, made.html, group, sections=made.sections))
        return pages


def sources():
    """Returns the pages for the files that chapters are made of."""
    listed = (rustdoc.ROOT / "sim/src/book/mod.rs").read_text()
    pages = {}
    for module, file in re.findall(r'^    (\w+) "([\w.]+)",$', listed, re.M):
        doc = f"{BOOK}/{module}/index.html"
        pages[f"sim/src/book/{file}"] = ELSEWHERE.get(doc) or Book.place(doc)
    for file in (rustdoc.ROOT / "sim/src/book/contract").glob("*.md"):
        name = "index" if file.stem == "index" else file.stem
        doc = f"{BOOK}/contract/{'' if name == 'index' else name + '/'}index.html"
        pages[str(Path(file).relative_to(rustdoc.ROOT))] = Book.place(doc)
    pages["sim/src/book/mod.rs"] = "book/index.html"
    pages["sim/scenario/src/grammar.md"] = Book.place(FORMAT)
    return pages
