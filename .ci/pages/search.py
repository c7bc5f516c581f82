"""The index of the search: a script, so that pages which are opened as files have it, too."""

import json
import re
from collections import defaultdict

from layout import Page

# The same words as in search.js.
WORD = re.compile(r"\w+(?:-\d+)?")
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
TITLE, HEADING, TEXT = 3, 2, 0
# Characters of what the list of results says of a page.
ABOUT = 160


def words(text):
    """Returns the words of a text: an id is one word."""
    return set(WORD.findall(text.lower()))


def base36(number):
    """Returns a number with the digits 0 to z."""
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = LETTERS[digit] + digits
        if number == 0:
            return digits


def index(pages):
    """Returns the script with the words of all pages."""
    entries, having = [], defaultdict(dict)

    def add(address, title, group, about, texts):
        number = len(entries)
        entries.append([address, title, group, about[:ABOUT]])
        for weight, text in texts:
            for word in words(text):
                having[word][number] = max(having[word].get(number, 0), weight)

    for page in pages:
        head, *rest = page.sections or [None]
        own = [(TITLE, page.title), (HEADING, page.about), (TEXT, " ".join(page.words))]
        if head:
            own.append((TEXT, " ".join(head.words)))
        add(page.path, page.title, page.group, page.about, own)
        for section in rest:
            title = f"{page.title}: {section.title}" if page.title != section.title else page.title
            add(f"{page.path}#{section.id}", title, page.group, "",
                [(HEADING, section.title), (TEXT, " ".join(section.words))])
    lines = []
    for word in sorted(having):
        before, numbers = 0, []
        for number, weight in sorted(having[word].items()):
            code = number * 4 + weight
            numbers.append(base36(code - before))
            before = code
        lines.append(" ".join([word, *numbers]))
    made = {"pages": entries, "words": "\n".join(lines)}
    return f"const siteIndex = {json.dumps(made, ensure_ascii=False, separators=(',', ':'))};\n"


def page():
    """Returns the page of the search."""
    body = """<p>All words must be on the page; the beginning of a word is enough. An id such as
<code>C-044</code> is a word.</p>
<p id="count" role="status"></p>
<ol id="results" class="texts"></ol>
<noscript><p>The search needs JavaScript.</p></noscript>
<script src="@/index.js"></script>
<script src="@/search.js"></script>"""
    return Page("search.html", "Search", body, "Project", is_listed=False)
