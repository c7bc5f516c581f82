"""Writes what the sections of all pages say, for the search. An extension of Sphinx."""

import json

from docutils import nodes


def text(node, whole=False):
    """Returns the text of a section without its title, and without the sections in it, unless they are wanted."""
    if isinstance(node, (nodes.title, nodes.raw)) or isinstance(node, nodes.section) and not whole:
        return ""
    if isinstance(node, nodes.TextElement):
        return "".join(it for it in node.findall(nodes.Text) if not isinstance(it.parent, nodes.raw))
    return " ".join(filter(None, (text(it, whole) for it in node.children)))


def write(app, failed):
    """Writes `search-sections.js`: the pages (name, title), and the sections (page, anchor, title, text). A text of the gallery,
    which has its source in a section, is one: without its results, of which only addresses are not in the source."""
    if failed:
        return
    pages, sections = [], []
    for page in sorted(app.env.found_docs):
        one = page.startswith("gallery/") and page.count("/") == 2
        for section in app.env.get_doctree(page).findall(nodes.section):
            title = section.next_node(nodes.title).astext()
            top = not isinstance(section.parent, nodes.section)
            if top:
                pages.append([page, title])
            elif one:
                continue
            shown = " ".join(text(it, one) for it in section.children
                             if not (one and isinstance(it, nodes.section) and "results" in it["ids"]))
            sections.append([len(pages) - 1, "" if top else section["ids"][0], "" if top else title, " ".join(shown.split())])
    data = json.dumps({"pages": pages, "sections": sections, "synonyms": json.loads((app.srcdir / "synonyms.json").read_text())}, ensure_ascii=False)
    (app.outdir / "search-sections.js").write_text(f"globalThis.SEARCH = {data};\n", encoding="utf-8")


def setup(app):
    """Tells Sphinx of the extension."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
