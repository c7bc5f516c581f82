"""The rules by number, with the texts of the gallery that name them."""

import html
import re

import rustdoc
from ids import PAGES, Ids
from layout import Page, chain, text
from markup import Section

# The kinds of rules beside the clauses: letter, hyphen, digits, title, introduction.
KINDS = [
    ("H", "-", 2, "Hazards", "Known ways in which profilers hang or crash, and how to avoid each."),
    ("D", "-", 2, "Errors of the documentation", "What the documentation says, and what the runtimes do."),
    ("E", "-", 1, "Worked stacks", "Complete stacks with the callbacks that they give."),
    ("G", "", 2, "Field bugs", "What went wrong for people who walk stacks of a CLR."),
]


def inline(source, ids):
    """Returns a line of Markdown as HTML: code, emphasis, and ids as links."""
    parts = []
    # Links of rustdoc to items.
    source = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", source)
    for n, part in enumerate(source.split("`")):
        part = html.escape(part, quote=False)
        if n % 2:
            parts.append(f"<code>{ids.linked(part)}</code>")
        else:
            part = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", part)
            parts.append(ids.linked(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)))
    return "".join(parts)


def named(pages, id):
    """Returns the list of the texts that name a rule."""
    if not pages:
        return '<p class="faint">No text of the gallery names it.</p>'
    count = "1 text names it" if len(pages) == 1 else f"{len(pages)} texts name it"
    items = "".join(f'<li><a href="@/{page.path}">{text(page.title)}</a></li>' for page in pages)
    return (f'<details><summary>{count}<span class="unseen">: {id}</span></summary>'
            f'<ul class="columns-list">{items}</ul></details>')


class Rules:
    """The rules that the tool prints, and their ids."""

    def __init__(self, tool):
        self.clauses = tool.objects("clauses")
        self.others = {}
        for letter, hyphen, digits, *_ in KINDS:
            last = self.last(tool, f"{letter}{hyphen}99")
            names = [f"{letter}{hyphen}{n:0{digits}}" for n in range(1, last + 1)]
            self.others[letter] = tool.objects("clauses", *names)
        known = [it["clause"] for it in self.clauses]
        self.ids = Ids(known + [it["id"] for others in self.others.values() for it in others], files=files())

    @staticmethod
    def last(tool, beyond):
        """Returns the last number of a kind of ids: the tool names it as the nearest of one beyond."""
        nearest = re.search(r"the nearest is \w-?(\d+)", tool.complaint("clauses", beyond))
        return int(nearest[1])

    def pages(self, gallery):
        """Returns the page of each kind of rules."""
        pages = [self.of_clauses(gallery)]
        for letter, _, _, title, about in KINDS:
            body, sections = [f"<p>{about}</p>"], [Section("", title, 1)]
            for rule in self.others[letter]:
                body.append(self.other(rule, gallery))
                sections.append(Section(rule["id"], self.heading(rule), 2, [rule["text"]]))
            pages.append(Page(PAGES[letter], title, "\n".join(body), "Rules", about, sections=sections))
        chain(pages)
        return pages

    @staticmethod
    def heading(rule):
        """Returns the heading of a rule: hazards and stacks have a title of their own."""
        return f"{rule['id']}: {rule['title']}" if rule["id"][0] in "EH" else rule["id"]

    def of_clauses(self, gallery):
        """Returns the page of the clauses, by chapter."""
        about = "The rules of the CLR that the simulator keeps, in the project's own words."
        body = [f"<p>{about} Code, texts and explanations name them by number. "
                '<a href="@/rules/the-evidence.html">The evidence</a> says for each runtime how they are known.</p>']
        sections, chapter, chapters = [Section("", "Clauses", 1)], None, chapters_by_clause()
        for clause in self.clauses:
            if chapters[clause["clause"]] != chapter:
                chapter = chapters[clause["clause"]]
                sections.append(Section(slug(chapter), chapter, 2))
                body.append(f'<h2 id="{slug(chapter)}">{text(chapter)}</h2>')
            id, source = clause["clause"], "; ".join(clause["source"])
            sections.append(Section(id, id, 3, [clause["rule"]]))
            body.append(
                f'<section class="rule"><h3 id="{id}">{id}</h3>'
                f"<p>{inline(clause['rule'], self.ids)}</p>"
                f'<dl class="facts"><dt>Holds on</dt><dd>{runtimes(clause["generations"])}</dd>'
                f"<dt>Evidence</dt><dd>{text(clause['evidence'])}: {inline(source, self.ids)}</dd></dl>"
                f"{named(gallery.naming(id), id)}</section>")
        return Page(PAGES["C"], "Clauses", "\n".join(body), "Rules", about, sections=sections)

    def other(self, rule, gallery):
        """Returns a rule that is no clause as HTML."""
        id = rule["id"]
        heading = f'<h2 id="{id}">{inline(self.heading(rule), Ids())}</h2>'
        # A worked stack has tables, and its page has them.
        lines = [] if id[0] == "E" else rule["text"].splitlines()
        ids = self.ids.of_contract() if id[0] != "H" else self.ids
        body = "".join(f"<p>{inline(line, ids)}</p>" for line in lines if line.strip())
        where = ""
        if id[0] != "H":
            address = self.ids.sections.get(id) or f"@/{rule['page'].replace('_', '-')}.html#{id}"
            where = f'<p><a href="{address}">{id} in the contract</a></p>'
        texts = named(gallery.naming(id), id)
        return f'<section class="rule">{heading}{body}{where}{texts}</section>'


def place(file):
    """Returns the path of the page for a file of the gallery."""
    *_, chapter, name = file.split("/")
    return f"gallery/{chapter}/{name.removesuffix('.kdl')}.html"


def files():
    """Returns the addresses of the gallery's texts, by file and by a name that is more than a word."""
    found, folder = {}, rustdoc.ROOT / "fixtures"
    for path in sorted(folder.rglob("*.kdl")):
        file = str(path.relative_to(folder))
        found[file] = f"@/{place(file)}"
        if "-" in path.stem:
            found[path.stem] = found[file]
    return found


def chapters_by_clause():
    """Returns the title of the chapter of each clause, as the book's page of clauses has them."""
    titles, title = {}, ""
    for line in (rustdoc.ROOT / "sim/src/book/clauses.md").read_text().splitlines():
        if line.startswith("## "):
            title = line.removeprefix("## ")
        elif found := re.match(r"\* \*\*(C-\d+)\*\*", line):
            titles[found[1]] = title
    return titles


def runtimes(names):
    """Returns runtimes as links to their pages."""
    return ", ".join(f'<a href="@/runtimes/{name}.html">{name}</a>' for name in names)


def slug(title):
    """Returns the id of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
