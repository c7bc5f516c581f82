"""Ids of rules, sections of the contract and names of texts, as links to their pages."""

import re

ID = re.compile(r"(?<![\w-])(?:C-\d{3}|[DH]-\d{2}|E-\d{1,2}|G\d{2})(?![\w-])")

# The page of each kind, by the first letter of its ids.
PAGES = {
    "C": "rules/clauses.html",
    "H": "rules/hazards.html",
    "D": "rules/documentation.html",
    "E": "rules/stacks.html",
    "G": "rules/field-bugs.html",
}


# Sections of the contract; in its own pages they need no name.
SECTION = re.compile(r"(?<=contract )§(\d+(?:\.\d+)*)")
OWN_SECTION = re.compile(r"(?<!DWARF 5 )(?<!DWARF 5, )§(\d+(?:\.\d+)*)")
# Files of the gallery.
FILE = re.compile(r"(?<![\w/])(?:fixtures/)?((?:gallery|programs)/[\w/-]+\.kdl)")


class Ids(set):
    """The ids that exist; the addresses of the contract's sections by number, and of texts by file and name."""

    def __init__(self, ids=(), sections=None, files=None, section=SECTION):
        super().__init__(ids)
        self.sections, self.files, self.section = sections or {}, files or {}, section

    def of_contract(self):
        """Returns the ids for texts of the contract itself."""
        return Ids(self, self.sections, self.files, OWN_SECTION)

    def address(self, id):
        """Returns the address of an id."""
        return f"@/{PAGES[id[0]]}#{id}"

    def link(self, id):
        """Returns an id as HTML: a link, if it exists."""
        return f'<a class="id" href="{self.address(id)}">{id}</a>' if id in self else id

    def linked(self, text):
        """Returns a text, or HTML without links, with its ids, sections and texts as links."""
        if text in self.files:
            return f'<a href="{self.files[text]}">{text}</a>'
        text = FILE.sub(self.file_link, text)
        return self.section.sub(self.section_link, ID.sub(lambda found: self.link(found[0]), text))

    def file_link(self, found):
        """Returns the name of a file as HTML: a link, if it is in the gallery."""
        address = self.files.get(found[1])
        return f'<a href="{address}">{found[0]}</a>' if address else found[0]

    def section_link(self, found):
        """Returns a section's citation as HTML: a link, if the section exists."""
        address = self.sections.get(found[1])
        return f'<a href="{address}">{found[0]}</a>' if address else found[0]

    def cited(self, text):
        """Returns the ids in a text."""
        return {found[0] for found in ID.finditer(text)} & self
