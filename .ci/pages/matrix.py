"""The results of snapshots on all runtimes as tables."""

import string

from layout import text

PREFIXES = ("CORPROF_E_STACKSNAPSHOT_", "CORPROF_E_")


def short(result):
    """Returns a result without what all names of its kind begin with."""
    for prefix in PREFIXES:
        result = result.removeprefix(prefix)
    return result


def sentence(why, ids):
    """Returns a sentence of a call's story, with its clauses."""
    clauses = ", ".join(ids.link(id) for id in why["clauses"])
    return text(why["text"]) + (f" [{clauses}]" if clauses else "")


def columns(snapshot, ids, families):
    """Returns what each group of runtimes with the same result answers, and why."""
    parts = ['<dl class="facts results">']
    for letter, column in zip(string.ascii_uppercase, snapshot["columns"]):
        parts.append(f"<dt>{letter}</dt><dd><strong>{families.named(column['runtimes'])}</strong>: "
                     f"<code>{text(column['result'])}</code>")
        if column["as_expected"] is not None:
            good = column["as_expected"]
            parts.append(f' <span class="{"good" if good else "bad"}">{"as" if good else "not as"} expected</span>')
        else:
            parts.append(' <span class="faint">nothing is expected</span>')
        if column["why"]:
            parts.append(f"<br>{sentence(column['why'], ids)}")
        for also in column["also"]:
            parts.append(f"<br>on {families.named(also['runtimes'])}: {sentence(also, ids)}")
        if column["parts"]:
            parts.append(f'<br><span class="faint">differs from A in: </span>{sentence(column["parts"], ids)}')
        parts.append("</dd>")
    parts.append("</dl>")
    return "".join(parts)


def row(callback):
    """Returns a callback as a row: its place, and its number in each column."""
    place = text(callback["place"] or "")
    name = f"marker in {place}" if callback["marker"] else place
    registers = ", ".join(f"{it['register']} {it['value']}" for it in callback["registers"] or [])
    registers = f' <span class="faint">{text(registers)}</span>' if registers else ""
    numbers = "".join(f"<td>{number or '–'}</td>" for number in callback["callbacks"])
    return f'<tr><th scope="row">{name}{registers}</th>{numbers}</tr>'


def table(snapshot):
    """Returns the results and the callbacks of a snapshot, side by side."""
    letters = string.ascii_uppercase[:len(snapshot["columns"])]
    heads = "".join(f'<th scope="col">{letter}</th>' for letter in letters)
    results = "".join(f"<td>{text(short(column['result']))}</td>" for column in snapshot["columns"])
    rows = "".join(map(row, snapshot["rows"]))
    return (f'<div class="scroll"><table><thead><tr><th scope="col">Callbacks, leaf first</th>{heads}</tr></thead>'
            f'<tbody><tr><th scope="row">HRESULT</th>{results}</tr>{rows}</tbody></table></div>')


def section(snapshot, ids, families):
    """Returns a snapshot on all runtimes as HTML."""
    number, title = snapshot["snapshot"], snapshot["title"]
    heading = f"Snapshot {number}: {title}" if title else f"Snapshot {number}"
    body = [f'<h3 id="snapshot-{number}">{text(heading)}</h3><p>{text(snapshot["call"])}</p>',
            columns(snapshot, ids, families)]
    if snapshot["rows"] or len(snapshot["columns"]) > 1:
        body.append(table(snapshot))
    return "".join(body)
