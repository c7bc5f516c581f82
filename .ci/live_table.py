"""Adds up what `.ci/live` has printed on stdout: a table of a line for each runtime, in Markdown.

usage: live_table.py [--page PAGE] FILE...
With --page the table replaces the one between the marks `live:begin` and `live:end` of the page.
"""
import json
import sys

NAMES = {"coreclr-3.1": "CoreCLR 3.1.23", "net8": ".NET 8.0.4", "net9": ".NET 9.0.7", "net10": ".NET 10.0.9",
         "coreclr-3.1-windows": "CoreCLR 3.1.23 for Windows", "net8-windows": ".NET 8.0.4 for Windows"}

paths, page = sys.argv[1:], None
if paths[:1] == ["--page"]:
    page, paths = paths[1], paths[2:]
runtimes = {}
for path in paths:
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            runtimes.setdefault(line["runtime"], {}).setdefault(line["workload"], []).append(line)


def row(runtime, workloads):
    lines = [line for lines in workloads.values() for line in lines]

    def total(name, of=lines):
        return sum(line[name] for line in of)

    def complete(of):
        return 100 * total("complete", of) / max(total("walks", of), 1)

    def share(percent):
        # Not "100.00 %" where a walk lost a frame.
        return "100 %" if percent == 100 else f"{min(percent, 99.99):.2f} %"

    lowest = min(workloads, key=lambda name: complete(workloads[name]))
    return (f"| {NAMES.get(runtime, runtime)} | {total('processes')} | {total('walks'):,} | {total('frames'):,}"
            f" | {share(complete(lines))} | {share(complete(workloads[lowest]))} (`{lowest}`)"
            f" | {total('wrong_frames')} | {total('false_whole')} | {total('allocations')}"
            f" | {total('hangs')}, {total('crashes')} |")


table = [
    "| runtime | processes | walks | frames | with every managed frame | the lowest share of a workload | wrong frames"
    " | false `Whole` | allocations in handlers | hangs, crashes |",
    "|---|---|---|---|---|---|---|---|---|---|",
    *(row(runtime, workloads) for runtime, workloads in runtimes.items()),
]
table = "\n".join(table) + "\n"
if page is None:
    print(table, end="")
else:
    begin, end = "<!-- live:begin -->\n", "<!-- live:end -->"
    with open(page, encoding="utf-8") as file:
        before, rest = file.read().split(begin)
        _, after = rest.split(end)
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + begin + table + end + after)
