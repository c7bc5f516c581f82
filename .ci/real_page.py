"""Prints the tables of `.ci/real`, and writes them into the page of the book.

usage: real_page.py RESULTS PAGE, with an empty PAGE to print alone. RESULTS has a file of lines for each
package: its name, platform and compilers, and the JSON of `clrsim lint` and of the example `readers`.
"""

import json
import pathlib
import sys


def rows(results):
    """Returns the lines of all packages."""
    for path in sorted(results.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            package, platform, compilers, lint, read = line.split("\t")
            yield package, platform, compilers, json.loads(lint), json.loads(read or "{}")


def number(count):
    return f"{count:,}"


def table(header, lines):
    """Returns a table in Markdown."""
    rule = ["---" if n < 3 else "--:" for n in range(len(header))]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in [header, rule, *lines])


def judgements(results):
    """Returns the table of what `clrsim lint` finds, by format and compiler."""
    sums = {}
    for package, platform, compilers, image, _ in rows(results):
        if not image["ranges"]:
            continue
        key = (image["format"], compilers, package, platform)
        own, total = sums.setdefault(key, {}), sums.setdefault(("all",), {})
        for row in (own, total):
            def add(name, count):
                row[name] = row.get(name, 0) + count

            add("images", 1)
            for name in ("ranges", "bytes", "executed_bytes", "instructions", "right"):
                add(name, image[name])
            for group in image["groups"]:
                add(group["blame"], group["instructions"])
    lines = []
    for key, row in sorted(sums.items(), key=lambda item: (item[0] == ("all",), item[0])):
        form, compilers, package = key[:3] if len(key) > 1 else ("", "", "all")
        share = min(100, 100 * row["executed_bytes"] / max(1, row["bytes"]))
        wrong = [number(row.get(it, 0)) for it in ("data", "windows-rules", "walker", "unknown")]
        counts = [number(row["images"]), number(row["ranges"]), f"{share:.1f} %"]
        package = package.removesuffix(" -")
        lines.append([form, package, compilers, *counts, number(row["instructions"]), *wrong])
    header = ["format", "package", "compilers", "images", "functions", "code executed", "instructions"]
    header += ["wrong: data", "Windows' rules", "`clr-walker`", "unknown"]
    return table(header, lines)


def readings(results):
    """Returns the tables of what other readers read: by format, and each kind of difference."""
    sums, kinds = {}, {}
    for package, platform, _, _, read in rows(results):
        if not read:
            continue
        row = sums.setdefault(read["format"], [0, 0, 0, 0])
        differences = sum(kind["count"] for kind in read["differences"])
        for n, count in enumerate((1, read["entries"], read["parts"], differences)):
            row[n] += count
        name = read["file"].rsplit("/", 1)[-1]
        for kind in read["differences"]:
            one = kinds.setdefault((read["format"], kind["kind"]), [0, 0, f"{name} ({platform}), {kind['first']}"])
            one[0] += kind["count"]
            one[1] += 1
    readers = {"PE": "pe-unwind-info", "ELF": "gimli", "Mach-O": "macho-unwind-info, gimli"}
    lines = [[form, readers[form], *map(number, row)] for form, row in sorted(sums.items())]
    text = table(["format", "other reader", "images", "entries", "codes, rows, layouts", "read otherwise"], lines)
    if kinds:
        lines = [[form, kind, first, number(count), number(images)] for (form, kind), (count, images, first) in sorted(kinds.items())]
        text += "\n" + table(["format", "read otherwise", "first", "entries", "images"], lines)
    return text


def main():
    results, page = pathlib.Path(sys.argv[1]), sys.argv[2]
    parts = {"real": judgements(results), "readers": readings(results)}
    sys.stdout.write("\n".join(parts.values()))
    for report in sorted(results.glob("reports/*")):
        parts[f"report {report.name}"] = f"```text\n{report.read_text(encoding='utf-8')}```\n"
    if not page:
        return
    path = pathlib.Path(page)
    content = path.read_text(encoding="utf-8")
    for name, text in parts.items():
        before, rest = content.split(f"<!-- {name} -->\n", 1)
        _, after = rest.split("<!-- / -->", 1)
        content = f"{before}<!-- {name} -->\n{text}<!-- / -->{after}"
    path.write_text(content, encoding="utf-8")


main()
