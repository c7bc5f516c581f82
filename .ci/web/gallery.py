"""The list of all texts, which a script filters: by words, result, runtime, hazard, tag and chapter."""

import html
import re


def choice(name, label, options):
    """Returns a choice of a form: values with what is shown for each."""
    items = "".join(f'<option value="{html.escape(value)}">{html.escape(shown)}</option>' for value, shown in options)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{items}</select></label>'


def where(on, runtimes):
    """Returns on which of all runtimes, which have systems, something is, in words."""
    families = [("all", ["windows", "unix"]), ("all for Windows", ["windows"]), ("all for Unix", ["unix"])]
    words = [f"{said} ({len(on)})" for said, systems in families if set(on) == {it for it in runtimes if runtimes[it] in systems}]
    return words[0] if words else ", ".join(it for it in runtimes if it in on)


def item(it, names):
    """Returns the entry of a text. What comes out has the runtimes as bits, in the order of the names."""
    found = ";".join(f"{result}:{sum(1 << names.index(name) for name in on):x}" for result, on in sorted(it["found"].items()))
    results = ", ".join(sorted(it["found"])) or "no call and no search"
    values = {"found": found, "tags": " ".join([*it["tags"], *it["ids"]]), "chapter": it["chapter"]}
    data = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in values.items())
    page = it["page"].removeprefix("gallery/").replace(".md", ".html")
    shows = html.escape(it["shows"] or "")
    return f'<li {data}><a href="{page}">{it["name"]}</a> <span>{shows}</span> <small>{html.escape(results)}</small></li>'


def index(listed, runtimes, hazards):
    """Returns the page of all texts."""
    names = list(runtimes)
    results = sorted({result for it in listed for result in it["found"]}, key=str.lower)
    tags = sorted({tag for it in listed for tag in it["tags"] if not re.fullmatch(r"[A-Z]-?\d+", tag)})
    chapters = sorted({it["chapter"] for it in listed})
    same = [choice(name, label, [(it, it) for it in values]) for name, label, values in
            [("result", "Result", results), ("runtime", "Runtime", names), ("tag", "Tag", tags), ("chapter", "Chapter", chapters)]]
    same.insert(2, choice("hazard", "Hazard", [(it["id"], f"{it['id']} {it['title']}") for it in hazards]))
    form = ('<form id="filters" role="search" hidden><label>Words <input name="words" type="search"></label>'
            + "".join(same) + '<button type="reset">All</button></form><p id="filtered" role="status"></p>')
    entries = "\n".join(item(it, names) for it in sorted(listed, key=lambda it: (it["chapter"], it["name"])))
    return ("# All texts", "Each text is a scenario with what it shows. Filtered by a result and a runtime, the list has the texts "
            "that give this result there. What comes out was computed for these pages: results of calls, and how searches end.",
            f"<div>{form}</div>", f'<ul id="texts">\n{entries}\n</ul>')
