"""HTML that rustdoc has rendered, as a part of a page."""

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import kdl
from ids import ID

HEADING = re.compile(r"h([1-6])$")
# Tables with this number of columns or more have a header in each row.
WIDE = 3


@dataclass
class Section:
    """A part of a page under a heading, for the search and the list of contents."""

    id: str
    title: str
    level: int
    words: list = field(default_factory=list)


@dataclass
class Fragment:
    """The content of a page: HTML without the title, whose links begin with `@/` at the site's root."""

    title: str
    html: str
    sections: list


def docblock(page):
    """Returns the HTML of the first description of a rustdoc page."""
    start = page.index('<div class="docblock">') + len('<div class="docblock">')
    depth = 1
    for tag in re.finditer(r"<(/?)div\b", page[start:]):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return page[start:start + tag.start()]
    raise ValueError("a description without an end")


class Rewriter(HTMLParser):
    """A pass over rendered HTML: headings from level 1, links of the site, tables that scroll."""

    def __init__(self, link, ids, shift=0):
        """`link` returns the address for an address, or None for plain text; `shift` raises headings."""
        super().__init__(convert_charrefs=False)
        self.link, self.ids, self.shift = link, ids, shift
        self.out, self.open_links = [], []
        self.title, self.sections = "", [Section("", "", 1)]
        self.anchor = self.heading = self.cells = self.row = self.pre = self.text = None
        self.in_head = self.is_first = False
        self.seen = set()

    def put(self, text):
        """Writes HTML; that of a heading is kept until its end."""
        (self.out if self.heading is None else self.heading[1]).append(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        raw = self.get_starttag_text()
        if tag == "a":
            self.start_link(values)
        elif found := HEADING.match(tag):
            level = max(1, int(found[1]) - self.shift)
            self.heading = (Section(values.get("id", ""), "", level), [])
        elif tag == "table":
            self.cells = 0
            self.put('<div class="scroll"><table>')
        elif tag in ("td", "th"):
            self.start_cell(tag, raw)
        elif tag == "pre":
            self.pre = values.get("class", "")
            self.text = [] if "language-kdl" in self.pre else None
            self.put(raw)
        else:
            if tag == "thead":
                self.in_head = True
            if tag == "tr":
                self.is_first = True
            self.put(raw)

    def handle_startendtag(self, tag, attributes):
        self.put(self.get_starttag_text())

    def start_link(self, values):
        """Opens a link of the site; rustdoc's links of a heading to itself are left out."""
        if "doc-anchor" in values.get("class", ""):
            self.anchor = True
            return
        target = self.link(values.get("href", ""))
        self.open_links.append(target is not None)
        if target is not None:
            self.put(f'<a href="{html.escape(target)}">')

    def start_cell(self, tag, raw):
        """Opens a cell; the first one of a row is its header if the table is wide."""
        self.row = tag
        if self.in_head:
            self.cells += 1
            self.put(raw.replace("<th", '<th scope="col"', 1))
            return
        self.row = "th" if self.is_first and self.cells >= WIDE else "td"
        self.put(raw.replace("<td", '<th scope="row"', 1) if self.row == "th" else raw)

    def handle_endtag(self, tag):
        if tag == "a":
            if self.anchor:
                self.anchor = None
            elif self.open_links.pop():
                self.put("</a>")
        elif HEADING.match(tag) and self.heading:
            self.end_heading()
        elif tag == "table":
            self.put("</table></div>")
            self.cells = None
        elif tag in ("td", "th"):
            self.put(f"</{'th' if self.in_head else self.row}>")
            self.is_first = False
        else:
            if tag == "thead":
                self.in_head = False
            if tag == "code" and self.text is not None:
                self.put(kdl.highlighted("".join(self.text), self.ids))
                self.text = None
            if tag == "pre":
                self.pre = None
            self.put(f"</{tag}>")

    def end_heading(self):
        """Writes a heading, or takes the first one as the title."""
        section, parts = self.heading
        self.heading = None
        inner = "".join(parts)
        section.title = html.unescape(re.sub(r"<[^>]*>", "", inner)).strip()
        if section.level == 1 and not self.title:
            self.title = section.title
            self.sections[0].title = section.title
            if section.id:
                self.put(f'<span id="{section.id}"></span>')
            return
        self.put(f'<h{section.level} id="{section.id}">{inner}</h{section.level}>\n')
        self.sections.append(section)

    def handle_data(self, data):
        if self.anchor:
            return
        if self.heading is None:
            self.sections[-1].words.append(html.unescape(data))
        if self.text is not None:
            self.text.append(data)
        elif self.heading is not None or any(self.open_links):
            self.put(data)
        elif self.is_row_id(data):
            # The row that defines an id is where links to the id's page come from.
            self.put(f'<a id="{data}" href="{self.ids.address(data)}">{data}</a>')
            self.seen.add(data)
        elif self.pre not in (None, "language-console"):
            self.put(data)
        else:
            self.put(self.ids.linked(data))

    def is_row_id(self, data):
        """Returns true if the data is the id that a table's row defines."""
        is_first = self.cells and self.is_first and not self.in_head
        return is_first and ID.fullmatch(data) and data in self.ids and data not in self.seen

    def handle_entityref(self, name):
        self.handle_reference(f"&{name};")

    def handle_charref(self, name):
        self.handle_reference(f"&#{name};")

    def handle_reference(self, reference):
        """Writes a character reference; in a text it is a part of the highlighted text."""
        if self.anchor:
            return
        self.sections[-1].words.append(html.unescape(reference))
        if self.text is not None:
            self.text.append(html.unescape(reference))
        else:
            self.put(reference)


def rewritten(source, link, ids, shift=0):
    """Returns rendered HTML as the content of a page."""
    rewriter = Rewriter(link, ids, shift)
    rewriter.feed(source)
    rewriter.close()
    return Fragment(rewriter.title, "".join(rewriter.out), rewriter.sections)
