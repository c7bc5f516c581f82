"""The frame of all pages: header, contents, and the way from a page to its neighbors."""

import html
import posixpath
import re
from dataclasses import dataclass, field

NAME = "clr-sim"
# A page with this number of headings gets a list of them.
MANY = 3


@dataclass
class Page:
    """A page: `body` is HTML whose links begin with `@/` at the site's root."""

    path: str
    title: str
    body: str
    # The group of the contents, and the pages between it and this one.
    group: str
    about: str = ""
    parents: list = field(default_factory=list)
    sections: list = field(default_factory=list)
    # Words that the search finds the page by, beside those of its sections.
    words: list = field(default_factory=list)
    previous: "Page | None" = None
    next: "Page | None" = None
    is_listed: bool = True


def text(it):
    """Returns a text as HTML."""
    return html.escape(it, quote=True)


def link(page, name=None, extra=""):
    """Returns a link to a page as HTML."""
    return f'<a href="@/{page.path}"{extra}>{text(name or page.title)}</a>'


def chain(pages):
    """Makes pages the neighbors of each other, in their order."""
    for before, after in zip(pages, pages[1:]):
        before.next, after.previous = after, before


def relative(source, path):
    """Returns HTML with its links as they are from the page at the path."""
    def address(found):
        target, mark, rest = found[2].partition("#")
        target, question, query = target.partition("?")
        to = posixpath.relpath(target, posixpath.dirname(path) or ".")
        return f'{found[1]}="{to}{question}{query}{mark}{rest}"'
    return re.sub(r'\b(href|src|action)="@/([^"]*)"', address, source)


class Layout:
    """The frame, with the contents of the site."""

    def __init__(self, groups):
        """`groups` has the pages of the contents, by the name of their group."""
        self.groups = groups

    def contents(self, page):
        """Returns the list of pages, opened where the page is."""
        parts = []
        for group, pages in self.groups.items():
            # On the first page, the book is where to begin.
            is_open = " open" if group == page.group or page.path == "index.html" and group == "Book" else ""
            parts.append(f"<details{is_open}><summary>{text(group)}</summary><ul>")
            for other in pages:
                is_here = other is page or other in page.parents
                here = ' aria-current="page"' if other is page else ' class="within"' if is_here else ""
                parts.append(f"<li>{link(other, extra=here)}</li>")
            parts.append("</ul></details>")
        return "\n".join(parts)

    def trail(self, page):
        """Returns the pages above a page."""
        if not page.parents:
            return ""
        above = "".join(f"<li>{link(parent)}</li>" for parent in page.parents)
        return f'<nav class="trail" aria-label="Above this page"><ol>{above}</ol></nav>'

    def inside(self, page):
        """Returns the list of the headings of a long page."""
        headings = [it for it in page.sections if it.level == 2 and it.id]
        if len(headings) < MANY:
            return ""
        items = "".join(f'<li><a href="#{it.id}">{text(it.title)}</a></li>' for it in headings)
        return (f'<nav class="inside" aria-labelledby="site-inside"><details><summary id="site-inside">'
                f"On this page</summary><ul>{items}</ul></details></nav>")

    def around(self, page):
        """Returns the links to the pages before and after."""
        parts = []
        if page.previous:
            parts.append(link(page.previous, f"← {page.previous.title}", ' rel="prev"'))
        if page.next:
            parts.append(link(page.next, f"{page.next.title} →", ' rel="next"'))
        return f'<nav class="around" aria-label="Before and after">{"".join(parts)}</nav>' if parts else ""

    def render(self, page):
        """Returns the HTML of a page."""
        title = NAME if page.title == NAME else f"{page.title} – {NAME}"
        about = f'<meta name="description" content="{text(page.about)}">\n' if page.about else ""
        whole = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
{about}<link rel="icon" href="data:,">
<link rel="stylesheet" href="@/site.css">
<script src="@/site.js"></script>
</head>
<body>
<a class="skip" href="#site-main">Skip to the content</a>
<header>
<a class="home" href="@/index.html">{NAME}</a>
<button type="button" id="site-menu" aria-expanded="false" aria-controls="site-contents">Contents</button>
<form role="search" action="@/search.html">
<label for="site-words">Search</label>
<input type="search" id="site-words" name="q" autocomplete="off" spellcheck="false">
</form>
<button type="button" id="site-theme">Theme: system</button>
</header>
<div class="columns">
<nav id="site-contents" aria-label="Contents">
{self.contents(page)}
</nav>
<main id="site-main" tabindex="-1">
{self.trail(page)}
<h1>{text(page.title)}</h1>
{self.inside(page)}
{page.body}
{self.around(page)}
</main>
</div>
</body>
</html>
"""
        return relative(whole, page.path)
