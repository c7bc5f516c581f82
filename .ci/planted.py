#!/usr/bin/env python3
"""Plants bugs by hand, and looks which oracle sees each.

    .ci/planted.py FOLDER [--target TARGET] [--only NAME ...] [--built]
    .ci/planted.py FOLDER [--target TARGET] --check

`tests/planted.tsv` has the bugs: the clauses that each breaks, the file, the code to be replaced (if
the column marks a part of the code by «», that part) and the code instead. In a copy of the sources
(in FOLDER) all of them are planted, and the variable MUTANT chooses one. The script writes the last
columns: the first text of the gallery that turns red, for each clause that has one, the number of red
texts among those that search no histories, the first unit test of clr-runtime, the first test that holds the runtime against
a model, and the first recording that is replayed otherwise. `-`: the oracle does not see the bug; `?`: it was not asked.

With --check, which .ci/run uses, nothing is written: the unit tests, which are compiled in the least time,
must see the bugs that the table says they see.

`tests/mutants.tsv` gets the row of each clause that it has no red text for, and that a planted bug has one
for: `red` or, if more than a quarter of the texts turn red, `crude`. `tested` means that something else sees the
bug: a test, a recording, or a text that does not name the clause.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from mutants import ROOT, SWITCH, texts

TABLE = ROOT / "tests/planted.tsv"
MUTANTS = ROOT / "tests/mutants.tsv"


def read():
    """Returns the comment of the table, and its rows; a bug can have several."""
    lines = TABLE.read_text().splitlines()
    rows = [(line.split("\t") + [""] * 11)[:11] for line in lines if not line.startswith("#")]
    return [line for line in lines if line.startswith("#")], rows


def place(text, code):
    """Returns start and end of the only place of the code; any white space will do."""
    before, part, after = re.match(r"(?:(.*)«)?([^«»]*)(?:»(.*))?$", code).groups(default="")

    def pattern(piece):
        return r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", piece))
    pieces = [pattern(before), f"({pattern(part)})", pattern(after)]
    found = list(re.finditer(r"\s*".join(piece for piece in pieces if piece), text))
    if len(found) != 1:
        raise SystemExit(f"{len(found)} places of {code}")
    return found[0].span(1)


def put(path, content):
    """Writes a file, unless it has this content: cargo compiles what is newer."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def numbers_of(rows):
    """Returns the number of each bug, from 1 in the order of the rows."""
    return {bug: number for number, bug in enumerate(dict.fromkeys(row[0] for row in rows), 1)}


def plant(copy, rows):
    """Writes the sources with all bugs to the copy. Returns the number of each bug."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    planted = {}
    numbers = numbers_of(rows)
    for file in {row[3] for row in rows}:
        text = (ROOT / file).read_text()
        switch = "crate::mutant::on" if file.startswith("walker/") else "clr_walker::mutant::on"
        edits = {}
        for name, _, _, of, code, instead, *_ in rows:
            if of == file:
                edits.setdefault(place(text, code), []).append((numbers[name], instead))
        for (start, end), bugs in sorted(edits.items(), reverse=True):
            code = text[start:end]
            for number, instead in bugs:
                code = f"(if {switch}({number}) {{ {instead} }} else {{ {code} }})"
            text = text[:start] + code + text[end:]
        planted[file] = text.encode()
    library = "walker/src/lib.rs"
    planted[library] = ("#![allow(warnings)]\n" + (ROOT / library).read_text() + SWITCH).encode()
    # With the same version cargo would take the crates of both folders for the same ones in a common target.
    manifest = (ROOT / "Cargo.toml").read_text()
    planted["Cargo.toml"] = manifest.replace('\nversion = "0.1.0"\n', '\nversion = "0.1.1"\n').encode()
    for file in tracked.stdout.splitlines():
        put(copy / file, planted.get(file) or (ROOT / file).read_bytes())
    return numbers


def cargo(copy, target, *arguments):
    """Runs cargo in the copy. Returns the binaries that it made."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target))
    done = subprocess.run(["cargo", *arguments, "-j2", "--message-format=json", "-q"], cwd=copy,
                          env=environment, capture_output=True, text=True, check=False)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        errors = [it["message"]["rendered"] for it in messages
                  if (it.get("message") or {}).get("level") == "error"]
        raise SystemExit("".join(errors) + done.stderr[-2000:])
    return [it["executable"] for it in messages if it.get("executable")]


def run(number, *command, seconds, **variables):
    """Returns the output of a program with a bug; of one that does not end it is empty."""
    environment = dict(os.environ, MUTANT=str(number), INSTA_UPDATE="no", **variables)
    try:
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                              timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""


def failing(number, binary, *filters, **variables):
    """Returns the first test that fails with a bug, or `-`."""
    output = run(number, binary, *filters, "--test-threads=2", seconds=300, **variables)
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", output, re.M)
    return min(failed, default="-" if "test result" in output else "does not end")


def unit_tests(copy, target):
    """Compiles the unit tests."""
    [binary] = cargo(copy, target, "test", "-p", "clr-runtime", "--lib", "--no-run")
    return binary


class Oracles:
    """The programs that may see a bug."""

    def __init__(self, copy, target):
        [self.tool] = cargo(copy, target, "build", "-p", "clrsim")
        self.unit = unit_tests(copy, target)
        [self.models] = cargo(copy, target, "test", "-p", "clr-tests", "--test", "runtime", "--no-run")
        gallery = ROOT / "fixtures/gallery"
        every = {path.relative_to(gallery).as_posix(): path for path in gallery.glob("*/*.kdl")}
        self.searching = {name for name, path in every.items()
                          if re.search(r"^explore", path.read_text(), re.M)}
        self.plain = sorted(set(every) - self.searching)
        self.named = texts()

    def red(self, number, names):
        """Returns the texts that fail with a bug. Those without a result count as well."""
        paths = [f"fixtures/gallery/{name}" for name in names]
        output = run(number, self.tool, "run", *paths, "--json", seconds=20 + 4 * len(names))
        found = (json.loads(line) for line in output.splitlines())
        passed = {it["file"] for it in found if "file" in it and it["failed"] == 0}
        return [name for name in names if f"fixtures/gallery/{name}" not in passed]

    def of(self, number, clauses):
        """Returns the last columns of a bug."""
        by_clause = [self.named.get(clause, []) for clause in clauses]
        named = {name for names in by_clause for name in names}
        red = self.red(number, self.plain)
        searching = self.red(number, sorted(named & self.searching)) if named & self.searching else []
        found = sorted(red + searching)
        first = dict.fromkeys(min(of) for names in by_clause if (of := set(names) & set(found)))
        shown = " ".join(first or found[:1]) or "-"
        replayed = run(number, self.tool, "run", "fixtures/clr", "--json", seconds=120)
        recordings = [it["file"].removeprefix("fixtures/clr/") for it in
                      map(json.loads, replayed.splitlines()) if "file" in it and it["failed"] > 0]
        recording = recordings[0] if recordings else "-" if replayed else "does not end"
        return [shown, str(len(red)), failing(number, self.unit),
                failing(number, self.models, "mixed::lookups", "promises_hold", CLR_TEST_CASES="0.2"), recording]


def update_mutants():
    """Fills rows of the mutants' table."""
    text = MUTANTS.read_text()
    named = texts()
    gallery = [path.read_text() for path in (ROOT / "fixtures/gallery").glob("*/*.kdl")]
    count = sum(1 for text in gallery if not re.search(r"^explore", text, re.M))
    rows = [row for row in read()[1] if row[6]]
    for name, clauses, _, _, _, _, shown, red, unit, model, recording in rows:
        for clause in (f"C-{int(number):03}" for number in clauses.split()):
            row = re.search(rf"^{clause}\t.*$", text, re.M)
            result = row[0].split("\t")[1]
            ours = next((text for text in shown.split() if text in named.get(int(clause[2:]), [])), None)
            is_fine = 4 * int(red) <= count
            test = next((it for it in (unit, model, recording, *shown.split()) if it != "-"), None)
            if result == "red" or result == "crude" and not (ours and is_fine):
                continue
            if ours:
                new = ("red" if is_fine else "crude", ours)
            elif test and result != "tested":
                new = ("tested", test)
            else:
                continue
            text = text.replace(row[0], f"{clause}\t{new[0]}\tplanted: {name}\t{new[1]}")
    MUTANTS.write_text(text)


def check(numbers, rows, binary):
    """Fails unless each test that the table names sees its bug, and no other change."""
    named = {row[0]: row[8] for row in rows if row[6] and row[8] != "-"}
    if failing(0, binary) != "-":
        raise SystemExit("the unit tests fail without a bug")
    missed = [f"{bug}: {test}" for bug, test in named.items()
              if failing(numbers[bug], binary, test, "--exact") != test]
    if missed or not named:
        raise SystemExit("\n".join(["the unit tests do not see:", *missed]))
    print(f"{len(named)} planted bugs are seen by unit tests")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--check", action="store_true", help="run the unit tests alone")
    parser.add_argument("--built", action="store_true", help="the copy is up to date")
    arguments = parser.parse_args()
    copy = arguments.folder.resolve()
    comment, rows = read()
    if arguments.built:
        numbers = numbers_of(rows)
    else:
        numbers = plant(copy, rows)
    target = (arguments.target or copy / "target").resolve()
    if arguments.check:
        check(numbers, rows, unit_tests(copy, target))
        return
    oracles = Oracles(copy, target)
    unharmed = oracles.of(0, [])
    if unharmed != ["-", "0", "-", "-", "-"]:
        raise SystemExit(f"without a bug: {unharmed}")
    done = set()
    for row in rows:
        name, clauses = row[0], [int(number) for number in row[1].split()]
        if name in done or arguments.only and name not in arguments.only:
            continue
        done.add(name)
        row[6:] = oracles.of(numbers[name], clauses)
        print(name, *row[6:], sep="\t", flush=True)
        TABLE.write_text("".join(line.rstrip("\t") + "\n" for line in
                                 comment + ["\t".join(row) for row in rows]))
    update_mutants()


if __name__ == "__main__":
    main()
