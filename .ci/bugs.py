#!/usr/bin/env python3
"""Plants bugs, and asks of each whether it is seen by what must see it.

    .ci/bugs.py [--check] [--only BUG|FOLDER ...] [--fuzz SECONDS]
    .ci/bugs.py --shown [FOLDER ...] [--only BUG|FOLDER ...]

`tests/bugs.tsv` has the bugs: a name, the clauses that the bug breaks, the file, the code to be replaced (if
the column marks a part of it by «», that part), the code instead, and what sees the bug:

    gallery/NAME.kdl, clr/NAME.gz     a text or a recording of `fixtures`, run by the tool
    CRATE::TEST                       a unit test
    CRATE/EXECUTABLE::TEST            another test
    CRATE, CRATE/EXECUTABLE           any of these tests: the report says which, so that the row can name one
    fuzz/TARGET                       campaigns from an empty corpus, with --fuzz alone (needs nightly and cargo-fuzz)

A bug in several places has a row for each; the first one says what sees it. All bugs are planted together in a copy of
the sources (target/bugs), and the variable MUTANT chooses one. A bug is seen if all that its row names fails with it
and passes without it. It is lost if its place is not there exactly once, or if it does not compile. A bug that is lost
or not seen fails the script; if nothing was seen at all, that does, too. With --check only the places and the names of
tests are looked for, and nothing is compiled.

With --shown the recordings and sequences of `fixtures` are replayed with each bug that breaks clauses. A recording shows a
clause on its runtime if one of its calls comes out without the bug, and not with it. The clause must apply to the call; if
no event of a call can name it, it must be the only one that the bug breaks. `sim/runtime/src/clause/shown.tsv` gets the
first recording of each clause and runtime. With folders of other recordings the rows of these that it lacks are printed
instead, as with --only.
"""

import argparse
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
SHOWN = ROOT / "sim/runtime/src/clause/shown.tsv"
COPY = ROOT / "target/bugs"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# What sees bugs and is a file, by the first part of its name.
FILES = {"gallery": "fixtures/{}", "clr": "fixtures/{}", "fuzz": "fuzz/fuzz_targets/{}.rs"}
tokens = re.compile(r"\w+|[^\w\s]").findall
SWITCH = b"""
/// Chooses a bug.
pub mod mutant {
    extern crate std;
    /// Returns true if the bug is chosen.
    pub fn on(number: u32) -> bool {
        static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        let read = || std::env::var("MUTANT").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
        *CHOSEN.get_or_init(read) == number
    }
}
"""


def place_of(text, code):
    """Returns start and end of the only place of the code, or why there is none; any white space will do."""
    parts = re.match(r"(?:(.*)«)?([^«»]*)(?:»(.*))?$", code).groups(default="")
    before, part, after = (r"\s*".join(map(re.escape, tokens(piece))) for piece in parts)
    found = list(re.finditer(r"\s*".join(piece for piece in (before, f"({part})", after) if piece), text))
    if len(found) == 1:
        return found[0].span(1), ""
    lines = {" ".join(tokens(line)): f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1)}
    near = difflib.get_close_matches(" ".join(tokens(parts[1])), lines, 1, 0)
    return None, f"{len(found)} places of {code}; the nearest line is {lines[near[0]] if near else 'none'}"


def read():
    """Returns the bugs of the list: their places (file, start, end, code instead), what sees them, why they are lost."""
    bugs = {}
    for line in (ROOT / "tests/bugs.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, clauses, file, code, instead, seers = (line.split("\t") + [""])[:6]
        new = SimpleNamespace(number=len(bugs) + 1, name=name, clauses=[], files=[], places=[], seers=[], lost="")
        bug = bugs.setdefault(name, new)
        bug.clauses += [int(clause.removeprefix("C-")) for clause in clauses.split()]
        bug.seers += seers.split()
        bug.files.append(file)
        path = ROOT / file
        place, why = place_of(path.read_text(), code) if path.is_file() else (None, "no such file")
        bug.lost = bug.lost or (f"{file}: {why}" if why else "")
        bug.places += [(file, *place, instead)] if place else []
    sources = [path for folder in ("walker", "sim", "tests") for path in (ROOT / folder).rglob("*.rs")]
    known = {name for path in sources for name in re.findall(r"\bfn (\w+)\(", path.read_text())}
    for bug in bugs.values():
        paths = [FILES[kind_of(seer)].format(seer.removeprefix("fuzz/")) for seer in bug.seers if kind_of(seer)]
        gone = [path for path in paths if not (ROOT / path).is_file()]
        gone += [f"test {seer}" for seer in bug.seers if "::" in seer and seer.split("::")[-1] not in known]
        bug.lost = bug.lost or (f"there is no {gone[0]}" if gone else "" if bug.seers else "nothing must see it")
    return list(bugs.values())


def kind_of(seer):
    """Returns the kind of what sees a bug and is a file, and nothing for tests."""
    return next((kind for kind in FILES if seer.startswith(f"{kind}/")), "")


def with_bugs(file, text, places):
    """Returns a text with all bugs of the file: (number, start, end, code instead)."""
    switch = "crate::mutant::on" if file.startswith("walker/unwind/src/") else "clr_unwind::mutant::on"
    begins, ends = defaultdict(list), defaultdict(int)
    for number, start, end, instead in places:
        # Of places that begin together the longest is the outermost.
        begins[start].append((-end, f"(if {switch}({number}) {{ {instead} }} else {{ "))
        ends[end] += 1
    for at in sorted({*begins, *ends}, reverse=True):
        text = text[:at] + " })" * ends[at] + "".join(code for _, code in sorted(begins[at])) + text[at:]
    return text


def plant(bugs):
    """Writes the sources with all bugs to the copy. What has not changed keeps its time: cargo compiles what is newer."""
    by_file = defaultdict(list)
    for bug in bugs:
        for file, *place in [] if bug.lost else bug.places:
            by_file[file].append((bug.number, *place))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(lambda file: (ROOT / file).is_file(), tracked.splitlines()):
        content = (ROOT / file).read_bytes()
        if file in by_file:
            content = with_bugs(file, content.decode(), by_file[file]).encode()
        if file == "walker/unwind/src/lib.rs":
            content = b"#![allow(warnings)]\n" + content + SWITCH
        if file == "Cargo.toml":
            # With the same version cargo would take the crates of both folders for the same ones in a common target.
            content = content.replace(b'\nversion = "0.1.0"\n', b'\nversion = "0.1.1"\n')
        copied = COPY / file
        if not copied.exists() or copied.read_bytes() != content:
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(content)


def cargo(bugs, *arguments):
    """Runs cargo in the copy; bugs that do not compile are lost. Returns the executables that it made, by name."""
    while True:
        done = subprocess.run(["cargo", *arguments, "--message-format=json", "-q"], stdout=subprocess.PIPE, text=True,
                              cwd=COPY, env=dict(os.environ, CARGO_TARGET_DIR=str(TARGET)), check=False)
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode == 0:
            return dict(program(it) for it in messages if it.get("executable"))
        errors = [it["message"] for it in messages if (it.get("message") or {}).get("level") == "error"]
        lines = "".join(line["text"] for error in errors for span in error["spans"] for line in span["text"])
        guilty = [bug for bug in bugs if not bug.lost and f"mutant::on({bug.number})" in lines]
        if not guilty:
            raise SystemExit("".join(error["rendered"] for error in errors) + f"cargo {' '.join(arguments)} fails")
        for bug in guilty:
            bug.lost = "does not compile: " + "; ".join(error["message"] for error in errors)[:300]
        plant(bugs)


def program(message):
    """Returns name and path of an executable that cargo has made: CRATE for unit tests, CRATE/EXECUTABLE else."""
    crate, target = re.search(r"([\w-]+)[@#][\d.]+$", message["package_id"])[1], message["target"]
    return crate if "lib" in target["kind"] else f"{crate}/{target['name']}", message["executable"]


class Seers:
    """What may see a bug: programs that fail with it."""

    def __init__(self, bugs, asked, fuzz):
        names = {seer for bug in asked for seer in bug.seers if not bug.lost}
        tests = {name.split("::")[0] for name in names if not kind_of(name)}
        self.fuzz, self.programs, self.seconds = fuzz, {}, {}
        if any(kind_of(name) in ("gallery", "clr") for name in names):
            self.programs |= cargo(bugs, "build", "-p", "clrsim")
        if tests:
            options = {f"--test={test.split('/')[1]}" if "/" in test else "--lib" for test in tests}
            packages = {f"-p={test.split('/')[0]}" for test in tests}
            self.programs |= cargo(bugs, "test", "--no-run", *sorted(packages | options))
        if fuzz and any(kind_of(name) == "fuzz" for name in names):
            subprocess.run(["cargo", "+nightly", "fuzz", "build", "-s", "none", "--no-trace-compares"], cwd=COPY, check=True)

    def run(self, command, number, seconds):
        """Runs a program with a bug. Returns whether it passes, and the output; one that does not end fails."""
        environment = dict(os.environ, MUTANT=str(number), INSTA_UPDATE="no", CLR_TEST_CASES="0.2")
        try:
            done = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, timeout=seconds, check=False)
            return done.returncode == 0, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return False, "does not end"

    def ask(self, seer, number, seconds):
        if kind_of(seer):
            return self.run([self.programs["clrsim/clrsim"], "run", f"fixtures/{seer}"], number, seconds)
        executable, *test = seer.split("::", 1)
        return self.run([self.programs[executable], *test, *["--exact"] * len(test)], number, seconds)

    def why_unfit(self, seer):
        """Returns why something cannot see bugs: it fails without one, or there is no such test."""
        if kind_of(seer) == "fuzz":
            return "" if self.fuzz else "unasked"
        begun = time.monotonic()
        passes, output = self.ask(seer, 0, 3600)
        self.seconds[seer] = time.monotonic() - begun
        if not passes:
            return "fails without a bug: " + output[-500:]
        return "" if kind_of(seer) or re.search(r"ok\. [1-9]\d* passed", output) else "is no test"

    def sees(self, seer, bug):
        """Returns what has seen a bug."""
        if kind_of(seer) == "fuzz":
            return [seer] * any(self.finds(seer.removeprefix("fuzz/"), bug, seed) for seed in range(1, 6))
        passes, output = self.ask(seer, bug.number, 60 + 10 * self.seconds[seer])
        failed = re.findall(r"^test (\S+) \.\.\. FAILED", output, re.M) if "::" not in seer else []
        return [] if passes else [f"{seer}::{test}" for test in failed] or [seer]

    def finds(self, target, bug, seed):
        """Runs a campaign with a bug. Returns true if it finds an input that fails, and passes without the bug."""
        binary = COPY / "fuzz/target/x86_64-unknown-linux-gnu/release" / target
        artifact, words = COPY / f"failure-{bug.name}-{target}", COPY / f"fuzz/dictionaries/{target}.dict"
        artifact.unlink(missing_ok=True)
        options = [f"-seed={seed}", f"-max_total_time={self.fuzz}", f"-exact_artifact_path={artifact}", "-timeout=10"]
        self.run([binary, *options, *[f"-dict={words}"] * words.exists()], bug.number, 60 + 2 * self.fuzz)
        return artifact.exists() and self.run([binary, artifact], 0, 60)[0]


class Replays:
    """Recordings and sequences, replayed by `tests/examples/replays.rs` with any bug."""

    def __init__(self, bugs, folders):
        program = cargo(bugs, "build", "-p=clr-tests", "--example=replays")["clr-tests/replays"]
        found = [path for folder in folders for end in ("*.gz", "*.txt") for path in folder.rglob(end)]
        self.files = sorted(map(str, found))
        self.kept = COPY / f"replays-{hashlib.sha256(Path(program).read_bytes()).hexdigest()[:16]}"
        self.kept.mkdir(exist_ok=True)
        # A build of the sources would put its own program there.
        self.program = shutil.copy(program, self.kept)
        begun = time.monotonic()
        *_, known = self.lines(0, [], 60)
        self.runtimes = {int(number): runtimes for number, runtimes in known["holds"].items()}
        self.named = set(known["named"])
        self.right, unended = self.run(0, 3600)
        self.seconds = time.monotonic() - begun
        # Without what is right nothing would be shown, and the table would be written empty.
        if unended or not any(self.right.values()):
            problem = (f"{len(unended)} of {len(self.files)} files did not end, first {min(unended)}" if unended
                       else f"no call of {len(self.files)} files came out")
            raise SystemExit(f"without a bug {problem}. Replay them by `cargo run -- run`, put them right, and call this again")

    def lines(self, number, files, seconds):
        """Replays files with a bug, until one crashes or does not end. Returns the lines of those before it."""
        environment = dict(os.environ, MUTANT=str(number))
        with subprocess.Popen([self.program, *files], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as made:
            end = threading.Timer(seconds, made.kill)
            end.start()
            lines = made.stdout.read().decode().splitlines()
            end.cancel()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def run(self, number, seconds):
        """Replays all files with a bug. Returns the calls that come out, with their clauses, by file and runtime, and the
        files that crash or do not end. If there are any, no call counts: what had come out by then depends on the machine."""
        right, lines = {}, self.lines(number, self.files, seconds)[1:]
        for line in lines:
            calls = {call: set(clauses) for call, clauses in line["calls"]}
            right.setdefault((line["file"], line["runtime"]), {}).update(calls)
        unended = set(self.files) - {line["file"] for line in lines if line["last"]}
        return ({} if unended else right), unended

    def shown(self, bug):
        """Returns what shows the clauses of a bug: clause, runtime, file and bug."""
        kept = self.kept / f"{bug.name}-{hashlib.sha256(repr(self.files).encode()).hexdigest()[:16]}"
        if kept.exists():
            return [tuple(row) for row in json.loads(kept.read_text())]
        # Other programs may run meanwhile: a replay that is merely late must not count as one without an end.
        found, (wrong, unended) = {}, self.run(bug.number, 60 + 5 * self.seconds)
        if unended:
            print(f"{bug.name} shows nothing: {len(unended)} files did not end, first {min(unended)}", file=sys.stderr, flush=True)
            return []
        for place, calls in self.right.items():
            file, runtime = place
            failed = [clauses for call, clauses in calls.items() if place in wrong and call not in wrong[place]]
            for clause in bug.clauses:
                alone = bug.clauses == [clause] and clause not in self.named
                if runtime in self.runtimes[clause] and any(alone or clause in clauses for clauses in failed):
                    found.setdefault((clause, runtime), (file, bug.name))
        rows = [(*cell, *by) for cell, by in found.items()]
        kept.write_text(json.dumps(rows))
        return rows


def takes_a_rule_out(bug):
    """Returns true if a bug takes rules out, and not half of all that a walk does."""
    return 0 < len(bug.clauses) <= 4 and not bug.lost


def show(bugs, asked, folders):
    """Writes what shows each clause, or prints what of other folders does, and of some bugs."""
    fixtures = [ROOT / "fixtures/clr", ROOT / "fixtures/sequences"]
    replays = Replays(bugs, [Path(folder).resolve() for folder in folders] or fixtures)
    asked = [bug for bug in asked if takes_a_rule_out(bug)]
    # Of several bugs the one that breaks the fewest clauses counts.
    asked.sort(key=lambda bug: len(bug.clauses))
    rows = {}
    with ThreadPoolExecutor(2) as pool:
        for bug, found in zip(asked, pool.map(replays.shown, asked)):
            print(f"{bug.name} {len(found)}", file=sys.stderr, flush=True)
            for clause, runtime, file, name in found:
                rows.setdefault((clause, runtime), (file.removeprefix(f"{ROOT}/fixtures/"), name))
    lines = [f"C-{clause:03}\t{runtime}\t{file}\t{bug}" for (clause, runtime), (file, bug) in sorted(rows.items())]
    if folders or len(asked) < sum(map(takes_a_rule_out, bugs)):
        known = {tuple(line.split("\t")[:2]) for line in SHOWN.read_text().splitlines()}
        print(*(line for line in lines if tuple(line.split("\t")[:2]) not in known), sep="\n")
    else:
        SHOWN.write_text("\n".join(["# What shows each clause: .ci/bugs.py --shown writes it.", *lines, ""]))
    print(f"{len(lines)} cells shown by {len(asked)} bugs, {replays.seconds:.0f} seconds each", file=sys.stderr)


def judge(seers, unfit, bug):
    """Returns the line of a bug in the report."""
    if bug.lost:
        return f"LOST {bug.name}: {bug.lost}"
    asked = [seer for seer in bug.seers if unfit[seer] != "unasked"]
    seen = {seer: [] if unfit[seer] else seers.sees(seer, bug) for seer in asked}
    missed = [f"{seer} {unfit[seer]}" for seer in asked if not seen[seer]]
    if missed:
        return f"NOT SEEN {bug.name} by {'; '.join(missed)}"
    return f"seen {bug.name} by {' '.join(it for by in seen.values() for it in by)}" if asked else f"unasked {bug.name}: needs --fuzz"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="look for the places alone")
    parser.add_argument("--only", nargs="+", default=[""], metavar="BUG", help="names of bugs, or beginnings of their files")
    parser.add_argument("--fuzz", type=int, default=0, metavar="SECONDS", help="time of each of five campaigns")
    parser.add_argument("--shown", nargs="*", metavar="FOLDER", help="find what shows each clause")
    arguments = parser.parse_args()
    bugs, only = read(), tuple(arguments.only)
    asked = [bug for bug in bugs if bug.name in only or any(file.startswith(only) for file in bug.files)]
    if not asked:
        parser.error(f"no bug of tests/bugs.tsv has the name, or a file below, {' '.join(only) or 'anything'}")
    if arguments.check:
        lost = [judge(None, {}, bug) for bug in asked if bug.lost]
        print(*lost, f"{len(asked)} bugs, {len(lost)} lost", sep="\n")
        sys.exit(bool(lost))
    plant(bugs)
    if arguments.shown is not None:
        show(bugs, asked, arguments.shown)
        sys.exit()
    seers = Seers(bugs, asked, arguments.fuzz)
    names = sorted({seer for bug in asked for seer in bug.seers if not bug.lost})
    words = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        unfit = dict(zip(names, pool.map(seers.why_unfit, names)))
        for line in pool.map(lambda bug: judge(seers, unfit, bug), asked):
            print(line, flush=True)
            words.append(line.split()[0])
    counts = {word: words.count(word) for word in ("seen", "unasked", "NOT", "LOST")}
    print("{seen} bugs seen, {unasked} unasked, {NOT} not seen, {LOST} lost".format(**counts))
    sys.exit(counts["NOT"] + counts["LOST"] > 0 or not counts["seen"])


if __name__ == "__main__":
    main()
