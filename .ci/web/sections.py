"""Writes what the sections of all pages say, for the search. An extension of Sphinx."""

import json

from docutils import nodes


def text(node):
    """Returns the text of a section without its title and without the sections in it."""
    if isinstance(node, (nodes.title, nodes.section, nodes.raw)):
        return ""
    if isinstance(node, nodes.TextElement):
        return "".join(it for it in node.findall(nodes.Text) if not isinstance(it.parent, nodes.raw))
    return " ".join(filter(None, map(text, node.children)))


def write(app, failed):
    """Writes `search-sections.js`: the pages (name, title), and the sections (page, anchor, title, text)."""
    if failed:
        return
    pages, sections = [], []
    for page in sorted(app.env.found_docs):
        for section in app.env.get_doctree(page).findall(nodes.section):
            title = section.next_node(nodes.title).astext()
            top = not isinstance(section.parent, nodes.section)
            if top:
                pages.append([page, title])
            # Of results on runtimes what is not in the source is addresses.
            shown = "" if page.startswith("gallery/") and title.startswith("Results ") else " ".join(map(text, section.children))
            sections.append([len(pages) - 1, "" if top else section["ids"][0], "" if top else title, " ".join(shown.split())])
    data = json.dumps({"pages": pages, "sections": sections, "synonyms": json.loads((app.srcdir / "synonyms.json").read_text())}, ensure_ascii=False)
    (app.outdir / "search-sections.js").write_text(f"globalThis.SEARCH = {data};\n", encoding="utf-8")


def setup(app):
    """Tells Sphinx of the extension."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
