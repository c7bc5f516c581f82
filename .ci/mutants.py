#!/usr/bin/env python3
"""Takes the rules out, one after the other, and looks which texts of the gallery turn red.

    .ci/mutants.py FOLDER [--target TARGET]

writes `tests/mutants.tsv`: for each clause, whether a text that names it fails once code that
implements it has been changed (red), fails only with changes that break more than a quarter of all
texts (crude), or does not fail (green). Mutants are generated, not written: in a copy of the sources (in
FOLDER) each condition that belongs to a clause can be fixed to false or to true, each statement can
be left out, and each function can return at once. All of them are compiled together, and the variable
MUTANT chooses one; those that do not compile are dropped. Code belongs to the clauses that comments
inside or right before it name, and to those of the events that it records; then to those of the function
around it. Where none of them is noticed, a bug of `tests/planted.tsv` may be, which was planted by
hand (.ci/planted.py).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["walker/src", "sim/runtime/src", "sim/world/src", "sim/explore/src", "sim/scenario/src"]
SKIPPED = re.compile(r"(/tests?/|tests?\.rs$|/clause/|/generation/|/explain/|\.md$)")
CLAUSE = re.compile(r"(?:\bC-|\bClause::new\()(\d{1,3})\b")
SWITCH = """
/// Chooses a mutant.
pub mod mutant {
    extern crate std;
    /// Returns true if the mutant is chosen.
    pub fn on(number: u32) -> bool {
        static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        let read = || std::env::var("MUTANT").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
        *CHOSEN.get_or_init(read) == number
    }
}
"""
# Clauses that no change of the code can take out, and why.
REASONS = {
    68: "an inlined method has no frame, so no code is about it",
    155: "memory before a code heap is not simulated",
}
# Results of functions that return at once, by the start of their type.
RETURNS = [
    ("bool", ["true", "false"]), ("Option<", ["None"]), ("u64", ["0"]), ("u32", ["0"]),
    ("usize", ["0"]), ("Vec<", ["Vec::new()"]), ("Result<(),", ["Ok(())"]), ("&'static [", ["&[]"]),
    ("Generations", ["Generations::NONE"]), ("", ["()"])]


def event_clauses():
    """Returns the clauses of each event."""
    text = (ROOT / "sim/runtime/src/explain/clauses.rs").read_text()
    found = defaultdict(set)
    for arm in re.finditer(r"((?:Self::\w+[^=]*?)+)=>\s*\{?\s*clauses!\[([\d ]*)\]", text):
        for name in re.findall(r"Self::(\w+)", arm[1]):
            found[name] |= {int(number) for number in arm[2].split()}
    for name, function in [("Started", "start_clauses"), ("FrameDropped", "dropped_clauses"),
                           ("Hidden", "hidden_clauses"), ("FrameFollowed", "frame_clauses"),
                           ("NotReported", "NotReported")]:
        part = text[text.index(f"fn {function}") if f"fn {function}" in text
                    else text.index("Self::NotReported"):]
        part = part[:part.index("\n}")] if f"fn {function}" in text else part[:400]
        for numbers in re.findall(r"clauses!\[([\d ]*)\]", part):
            found[name] |= {int(number) for number in numbers.split()}
    return found


def blanked(text, filler=" "):
    """Returns the text with blanks in place of comments, and a filler in place of strings and characters."""
    def blank(match):
        return re.sub(r"[^\n]", " " if match[0].startswith("/") else filler, match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\n]{1,8}?|[^\'\\\n])\'', blank,
                  text, flags=re.S)


def closing(code, at):
    """Returns the offset of the brace that closes the one at an offset."""
    depth = 0
    for offset in range(at, len(code)):
        depth += (code[offset] in "{([") - (code[offset] in "})]")
        if depth == 0:
            return offset
    return len(code) - 1


def comment_before(text, at):
    """Returns the comment lines right before the line of an offset."""
    lines = text[:text.rfind("\n", 0, at) + 1].splitlines()
    found = []
    while lines and re.match(r"\s*(//|#\[)", lines[-1]):
        found.append(lines.pop())
    return "\n".join(found)


def conditions(code):
    """Yields start and end of each condition, and of its block."""
    for match in re.finditer(r"\b(if|while)\b ", code):
        depth, at = 0, match.end()
        while at < len(code) and not (depth == 0 and code.startswith(("{", "=>", ";"), at)):
            depth += (code[at] in "([{") - (code[at] in ")]}")
            if depth < 0:
                break
            at += 1
        if depth != 0 or not code[match.end():at].strip():
            continue
        if code.startswith("{", at):
            yield match.end(), at, at, closing(code, at)
        elif code.startswith("=>", at):
            end = code.find("\n", at)
            brace = code.find("{", at, end)
            yield match.end(), at, at, closing(code, brace) if brace >= 0 else end


def statements(code):
    """Yields start and end of each statement that is a call or an assignment."""
    for match in re.finditer(r"^ +(?!let |return |break|continue|use |pub |const |static |if |match )"
                             r"(?=[a-z*])[\w.*]+[^;{}]*?;$", code, re.M):
        statement = match[0].strip()
        if statement.count("(") == statement.count(")") and re.match(r"[\w.*:]+(\(| [|&+-]?= )", statement):
            yield match.start() + len(match[0]) - len(match[0].lstrip()), match.end()


def functions(code):
    """Yields offset, name, body and result of each function."""
    for match in re.finditer(r"\bfn (\w+)", code):
        brace, semicolon = code.find("{", match.end()), code.find(";", match.end())
        if brace < 0 or 0 <= semicolon < brace and "[" not in code[match.end():brace]:
            continue
        signature = code[match.end():brace]
        returns = signature.rsplit("->", 1)[1].split("where")[0].strip() if "->" in signature else ""
        yield match.start(), match[1], brace, closing(code, brace), returns


def mutants_of(path, events):
    """Yields the mutants of a file: kind, edit, a line of code, and the clauses with a distance: 0
    if the mutant is right at the place that names the clause, 1 if it is in the same function."""
    text = path.read_text()
    cut = text.find("#[cfg(test)]\nmod tests {")
    text = text if cut < 0 else text[:cut]
    code = blanked(text)

    def clauses(inside, before):
        found = {int(number) for number in CLAUSE.findall(inside) + CLAUSE.findall(before)}
        for name in re.findall(r"Event::(\w+)", inside):
            found |= events.get(name, set())
        return found

    all_functions = list(functions(code))

    def near(start, found):
        around = [it for it in all_functions if it[2] < start < it[3]]
        distances = {}
        if around:
            at, _, brace, end, _ = around[-1]
            for clause in clauses(text[brace:end], comment_before(text, at)):
                distances[clause] = 1
        for clause in found:
            distances[clause] = 0
        return distances

    for start, end, block, last in conditions(code):
        found = near(start, clauses(text[block:last], comment_before(text, start)))
        if not found:
            continue
        line = " ".join(text[start:end].split())
        if re.search(r"\blet\b", code[start:end]):
            if "||" not in code[start:end]:
                yield "let", (start, end, "false"), f"never: {line}", found
            continue
        for value, word in (("false", "never"), ("true", "always")):
            yield "condition", (start, end, value), f"{word}: {line}", found
    for start, end in statements(code):
        found = near(start, clauses(text[start:end], comment_before(text, start)))
        if found:
            line = " ".join(text[start:end].split())
            yield "statement", (start, end, ""), f"without: {line}", found
    for start, name, brace, end, returns in all_functions:
        found = {clause: 0 for clause in clauses("", comment_before(text, start))}
        for clause in clauses(text[brace:end], ""):
            found.setdefault(clause, 1)
        if not found or returns.startswith("impl "):
            continue
        values = next((values for first, values in RETURNS
                       if (returns.startswith(first) if first else not returns)), [])
        for value in values:
            yield "function", (brace + 1, start, value), f"{name} returns {value}", found


def write(copy, mutants):
    """Writes the sources with all mutants to the copy."""
    by_file = defaultdict(list)
    for number, mutant in mutants.items():
        by_file[mutant["file"]].append((number, mutant))
    for file, of_file in by_file.items():
        text = (ROOT / file).read_text()
        switch = "crate::mutant::on" if file.startswith("walker/") else "clr_walker::mutant::on"
        inserts = defaultdict(str)
        for number, mutant in of_file:
            kind, (start, end, value) = mutant["kind"], mutant["edit"]
            if kind == "condition":
                if value == "false":
                    inserts[start] = f"!{switch}({number}) && (" + inserts[start]
                else:
                    inserts[start] = f"{switch}({number}) || (" + inserts[start]
                inserts[end] += ")"
            elif kind == "let":
                inserts[end] += f" && !{switch}({number}) "
            elif kind == "statement":
                inserts[start] = f"if !{switch}({number}) {{ " + inserts[start]
                inserts[end] += " }"
            else:
                inserts[start] += f" if {switch}({number}) {{ return {value}; }}"
        for at in sorted(inserts, reverse=True):
            # A bracket belongs right behind the condition.
            put = at
            if inserts[at].startswith((")", " &&")):
                while text[put - 1].isspace():
                    put -= 1
            text = text[:put] + inserts[at] + text[put:]
        for _, mutant in of_file:
            name = mutant["function"]
            if name:
                text = re.sub(rf"\bconst fn {name}\b", f"fn {name}", text)
        if file == "walker/src/lib.rs":
            text += SWITCH
        (copy / file).write_text("#![allow(warnings)]\n" + text if file.endswith("lib.rs") else text)
    lib = copy / "walker/src/lib.rs"
    if "pub mod mutant" not in lib.read_text():
        lib.write_text((ROOT / "walker/src/lib.rs").read_text() + SWITCH)


def enclosing_function(code, at):
    """Returns the name of the function around an offset, or an empty name."""
    names = [match[1] for match in re.finditer(r"\bconst fn (\w+)", code[:at])]
    plain = [match for match in re.finditer(r"\bfn (\w+)", code[:at])]
    return plain[-1][1] if plain and names and plain[-1][1] == names[-1] else ""


def compile_all(copy, target, mutants):
    """Compiles all mutants, and drops those that do not compile."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target))
    for _ in range(12):
        write(copy, mutants)
        done = subprocess.run(
            ["cargo", "build", "-j2", "-p", "clrsim", "--message-format=json", "-q"],
            cwd=copy, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        dropped = set()
        for line in done.stdout.splitlines():
            message = json.loads(line).get("message") or {}
            if message.get("level") != "error":
                continue
            constant = re.search(r"non-const (?:\w+ )?`(?:[^`]*::)?(\w+)`", message["message"])
            if constant:
                dropped |= {number for number, mutant in mutants.items()
                            if mutant["function"] == constant[1]}
            pending = [message]
            while pending:
                one = pending.pop()
                pending += one.get("children", [])
                for span in one.get("spans", []):
                    file = span["file_name"]
                    numbers = set()
                    lines = (copy / file).read_text().splitlines() if (copy / file).exists() else []
                    for text in lines[span["line_start"] - 1:span["line_end"]]:
                        numbers |= {int(number) for number in re.findall(r"mutant::on\((\d+)\)", text)}
                    dropped |= numbers
        dropped &= set(mutants)
        if not dropped:
            raise SystemExit("does not compile:\n" + done.stderr[-4000:] + done.stdout[-2000:])
        print(f"{len(dropped)} of {len(mutants)} mutants do not compile", flush=True)
        for number in dropped:
            del mutants[number]
        for folder in FOLDERS:
            shutil.rmtree(copy / folder)
            shutil.copytree(ROOT / folder, copy / folder)
    raise SystemExit("the mutants do not compile")


def texts():
    """Returns the texts of the gallery that name each clause, small ones first."""
    found = defaultdict(list)
    for path in sorted((ROOT / "fixtures/gallery").glob("*/*.kdl")):
        text = path.read_text()
        name = path.relative_to(ROOT / "fixtures/gallery").as_posix()
        code = re.sub(r"//[^\n]*", "", text)
        numbers = {int(number) for number in CLAUSE.findall(code)}
        numbers |= {int(number) for number in re.findall(r"/c-(\d{3})-", name)}
        searches = len(re.findall(r"^explore", code, re.M))
        for number in numbers:
            found[number].append((searches, len(text), name))
    return {number: [name for _, _, name in sorted(names)] for number, names in found.items()}


def is_red(binary, number, names):
    """Returns the first text that fails with a mutant, or None."""
    environment = dict(os.environ, MUTANT=str(number))
    for at in range(0, len(names), 8):
        part = names[at:at + 8]
        for name in [part] if len(part) == 1 else [part, *([one] for one in part)]:
            paths = [f"fixtures/gallery/{one}" for one in name]
            try:
                done = subprocess.run([binary, "run", *paths], cwd=ROOT, env=environment,
                                      capture_output=True, timeout=25, check=False)
                failed = done.returncode != 0
            except subprocess.TimeoutExpired:
                failed = True
            if not failed:
                break
            if len(name) == 1:
                return name[0]
    return None


class Sample:
    """Some texts, by which a mutant is known that breaks nearly everything."""

    def __init__(self, binary):
        every = sorted((ROOT / "fixtures/gallery").glob("*/*.kdl"))
        plain = [path for path in every if "explore" not in path.read_text()]
        self.names = [path.relative_to(ROOT / "fixtures/gallery").as_posix() for path in plain[::12]]
        self.binary = binary
        self.shares = {}

    def share(self, number):
        """Returns the share of these texts that fail with a mutant."""
        if number not in self.shares:
            paths = [f"fixtures/gallery/{name}" for name in self.names]
            try:
                done = subprocess.run([self.binary, "run", *paths, "--json"], cwd=ROOT, text=True,
                                      env=dict(os.environ, MUTANT=str(number)),
                                      capture_output=True, timeout=25, check=False)
                files = [json.loads(line) for line in done.stdout.splitlines()]
                passed = sum(1 for file in files if "file" in file and not file.get("failed", 1))
            except (subprocess.TimeoutExpired, ValueError):
                passed = 0
            self.shares[number] = 1 - passed / len(self.names)
        return self.shares[number]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--built", action="store_true", help="the copy is compiled already")
    arguments = parser.parse_args()
    copy = arguments.folder
    copy.mkdir(parents=True, exist_ok=True)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for file in [] if arguments.built else tracked.stdout.splitlines():
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    events = event_clauses()
    mutants = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            file = path.relative_to(ROOT).as_posix()
            if SKIPPED.search(file):
                continue
            code = blanked(path.read_text())
            for kind, edit, line, clauses in mutants_of(path, events):
                at = edit[0]
                mutants[len(mutants) + 1] = {
                    "file": file, "kind": kind, "edit": edit, "line": line, "clauses": clauses,
                    "function": enclosing_function(code, at)}
    print(f"{len(mutants)} mutants", flush=True)
    target = arguments.target or copy / "target"
    if not arguments.built:
        compile_all(copy, target, mutants)
    binary = str(target / "debug/clrsim")
    named = texts()
    sample = Sample(binary)
    clauses = sorted({int(number) for number in re.findall(
        r"^    (\d+): ", "\n".join(path.read_text() for path in
                                 (ROOT / "sim/runtime/src/clause").glob("*.rs")), re.M)})
    rows = []
    for clause in clauses:
        # The nearer, and the fewer clauses a mutant belongs to, the more it is about this one.
        of_clause = sorted((it["clauses"][clause], len(it["clauses"]), number)
                           for number, it in mutants.items() if clause in it["clauses"])
        row = (f"C-{clause:03}", "no mutant", REASONS.get(clause, ""), "")
        if of_clause and not named.get(clause):
            row = (f"C-{clause:03}", "no text", "", "")
        elif of_clause:
            row = (f"C-{clause:03}", "green", f"{len(of_clause)} mutants", "")
            for *_, number in of_clause[:30]:
                red = is_red(binary, number, named[clause])
                if red:
                    mutant = mutants[number]
                    result = "red" if sample.share(number) <= 0.25 else "crude"
                    row = (f"C-{clause:03}", result, f"{mutant['file']}: {mutant['line'][:90]}", red)
                    if result == "red":
                        break
        rows.append(row)
        print("\t".join(row), flush=True)
    table = "# clause\tresult\tmutant\ttext\n" + "".join("\t".join(row) + "\n" for row in rows)
    (ROOT / "tests/mutants.tsv").write_text(table)
    sys.dont_write_bytecode = True
    from planted import update_mutants
    update_mutants()


if __name__ == "__main__":
    main()
