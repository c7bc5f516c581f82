#!/usr/bin/env python3
"""Measures how many mutants of cargo-mutants the tests see.

    .ci/mutation_score.py FOLDER [--target TARGET] [--shard 3/16] [--only PATH ...] [--tests PACKAGE ...]
                          [--system NAME ...] [--longest SECONDS] [--again] [--built] [--jobs N]
    .ci/mutation_score.py FOLDER --table

All mutants of the crates below are compiled into a copy of the sources (in FOLDER) at once, as switches
(.ci/switches.py), and so are the tests. Each test is run once alone: that gives its time, and the mutants
that it reaches. A mutant is then run with the tests that reach it, those of its own crate first, quick ones
first, until one fails, crashes, or takes ten times as long. Results are appended to FOLDER/results.tsv:
another run continues there, and a shard takes every sixteenth number from the third. With --again mutants
that survived are run once more: after new tests, or with those of more crates. With --system only these
targets of clr-tests are built (`gallery`, `properties`), which is much quicker than all of them.

--table writes `tests/mutation_score.tsv` (the score of each folder, and the crates whose tests every survivor
was run with) and `tests/survivors.tsv` (the mutants that no test sees, and for those that are argued away the
reason, which stays as it is written there). The score is the share of those that were run and not argued away.
Folders of which nothing was run in FOLDER keep their rows.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
from mutants import ROOT, blanked, closing
from planted import put
from switches import SWITCH, NotExpressed, Source

PACKAGES = ["clr-walker", "clr-runtime", "clr-world", "clr-explore"]
# Crates with tests that run this code, cheap ones first.
SYSTEM = "clr-tests"
TESTED = [*PACKAGES, "clr-scenario", SYSTEM]
# Tests about source texts, and about the machine alone.
OTHER_TESTS = ("project::", "machine::")
SCORE = ROOT / "tests/mutation_score.tsv"
SURVIVORS = ROOT / "tests/survivors.tsv"
MEMORY = 4 << 30
CASES = "0.1"


def listed():
    """Returns the mutants, by number."""
    packages = [argument for package in PACKAGES for argument in ("-p", package)]
    done = subprocess.run(["cargo", "mutants", "--list", "--json", *packages], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    mutants, times = {}, defaultdict(int)
    for mutant in json.loads(done.stdout):
        name = re.sub(r"^(\S+?):\d+:\d+: ", r"\1: ", mutant["name"])
        times[name] += 1
        del mutant["diff"]
        mutant["name"] = name if times[name] == 1 else f"{name} #{times[name]}"
        mutants[len(mutants) + 1] = mutant
    return mutants


def copied(copy, mutants, dropped):
    """Writes the sources with all mutants that compile to the copy. Drops those that no switch expresses."""
    by_file = defaultdict(dict)
    for number, mutant in mutants.items():
        if mutant["name"] not in dropped:
            by_file[mutant["file"]][number] = mutant
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for file in tracked.stdout.splitlines():
        content = (ROOT / file).read_bytes()
        if file in by_file:
            source = Source(content.decode())
            for number, mutant in list(by_file[file].items()):
                try:
                    source.brackets_of(mutant, number)
                except NotExpressed as reason:
                    dropped[mutant["name"]] = f"not expressed: {reason}"
                    del by_file[file][number]
            path = "crate::mutant::on" if file.startswith("walker/") else "clr_walker::mutant::on"
            content = source.with_switches(by_file[file], path).encode()
        if file == "walker/src/lib.rs":
            features = b"#![feature(core_intrinsics, const_eval_select)]\n"
            content = features + content + SWITCH.encode()
        if file.endswith("src/lib.rs"):
            content = b"#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n" + content
        if file == "Cargo.toml":
            # With the same version cargo would take the crates of both folders for the same ones.
            content = content.replace(b'\nversion = "0.1.0"\n', b'\nversion = "0.1.2"\n')
            # Optimising thousands of switches takes longer than the tests gain by it.
            for package in PACKAGES:
                profile = f"[profile.dev.package.{package}]\nopt-level = ".encode()
                content = content.replace(profile + b"2", profile + b"1")
        put(copy / file, content)


def cargo(copy, target, *arguments):
    """Runs cargo in the copy. Returns its messages, and whether it succeeded."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target), RUSTC_BOOTSTRAP="clr_walker",
                       CARGO_PROFILE_DEV_DEBUG="0")
    done = subprocess.run(["cargo", *arguments, "--message-format=json", "-q"], cwd=copy,
                          env=environment, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done


def blamed(copy, messages):
    """Returns the numbers of the mutants that errors are about, with the error."""
    found, sources = {}, {}
    for message in messages:
        message = message.get("message") or {}
        if message.get("level") != "error":
            continue
        pending, spans = [message], []
        while pending:
            one = pending.pop()
            pending += one.get("children", [])
            spans += one.get("spans", [])
        numbers = set()
        for is_near in (True, False):
            for span in spans:
                path = copy / span["file_name"]
                if not path.exists():
                    continue
                lines = sources.setdefault(path, path.read_text().splitlines())
                numbers |= near(lines, span, is_near)
            if numbers:
                break
        if (message.get("code") or {}).get("code") == "E0004":
            numbers |= {number for span in message["spans"] if span["is_primary"]
                        for number in arms((copy / span["file_name"]).read_text(), span)}
        found |= dict.fromkeys(numbers, message["message"])
    return found


def arms(text, span):
    """Returns the mutants that leave out arms of the match whose scrutinee is the span."""
    code = blanked(text, "x")
    start = code.index("{", len("".join(text.splitlines(keepends=True)[:span["line_end"] - 1])) + span["column_end"] - 1)
    end = closing(code, start)
    return {int(it) for it in re.findall(r" if !(?:crate|clr_walker)::mutant::on\((\d+)\) (?:=>|&&)", text[start:end])}


def near(lines, span, is_near):
    """Returns the mutants inside a span, or else the one before it in its line; or all of its lines."""
    first, last = span["line_start"] - 1, span["line_end"] - 1
    asked = re.compile(r"mutant::on\((\d+)\)")
    if not is_near:
        return {int(number) for line in lines[first:last + 1] for number in asked.findall(line)}
    inside = "\n".join(lines[first:last + 1])
    start = span["column_start"] - 1
    end = len(inside) - len(lines[last]) + span["column_end"] - 1
    numbers = asked.findall(inside[start:end]) or asked.findall(inside[:start])[-1:]
    return {int(number) for number in numbers}


def compiled(copy, target, mutants, dropped):
    """Compiles all mutants, and drops those that do not compile."""
    for _ in range(60):
        copied(copy, mutants, dropped)
        packages = [argument for package in PACKAGES for argument in ("-p", package)]
        messages, done = cargo(copy, target, "check", *packages)
        if done.returncode == 0:
            return
        errors = blamed(copy, messages)
        if not errors:
            raise SystemExit("does not compile:\n" + "".join(
                (it.get("message") or {}).get("rendered") or "" for it in messages)[-6000:] + done.stderr[-2000:])
        print(f"{len(errors)} of {len(mutants)} mutants do not compile", flush=True)
        for number, error in errors.items():
            dropped[mutants[number]["name"]] = error
    raise SystemExit("the mutants do not compile")


class Test:
    """A test, its time in seconds, and the mutants that it reaches."""

    def __init__(self, package, binary, folder, name, seconds=None, reached=()):
        self.package, self.binary, self.folder, self.name = package, binary, folder, name
        self.seconds, self.reached = seconds, set(reached)


def run(folder, binary, names, seconds, **variables):
    """Runs tests. Returns whether they passed: "passed", "failed" or "timeout"."""
    environment = dict(os.environ, INSTA_UPDATE="no", RUST_BACKTRACE="0", CLR_TEST_CASES=CASES,
                       PROPTEST_MAX_SHRINK_ITERS="0", PROPTEST_FAILURE_PERSISTENCE="off", **variables)
    environment.pop("CLR_BLESS", None)

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    process = subprocess.Popen([binary, "--exact", "--test-threads=1", *names], cwd=folder, env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit,
                               start_new_session=True)
    try:
        return "passed" if process.wait(timeout=seconds) == 0 else "failed"
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def tests_of(copy, target, packages, system, known, longest):
    """Builds the tests of crates, and of clr-tests those in the targets `system` if there are some. Runs
    each that is not known once. Returns those that pass in time."""
    units = [package for package in packages if package != SYSTEM or not system]
    builds = [["--lib", "--tests", *(argument for package in units for argument in ("-p", package))]] * bool(units)
    if len(units) < len(packages):
        builds.append(["-p", SYSTEM, *(argument for name in system for argument in ("--test", name))])
    messages = []
    for arguments in builds:
        of_build, done = cargo(copy, target, "test", "--no-run", *arguments)
        messages += of_build
        if done.returncode != 0:
            raise SystemExit("".join(
                (it.get("message") or {}).get("rendered") or "" for it in messages)[-6000:])
    tests = []
    for message in messages:
        if not message.get("executable"):
            continue
        folder = str(Path(message["manifest_path"]).parent)
        package = re.search(r'name = "([^"]+)"', Path(message["manifest_path"]).read_text())[1]
        binary = message["executable"]
        tests += [Test(package, binary, folder, it) for it in
                  re.findall(r"^(.+): test$", subprocess.run(
                      [binary, "--list"], cwd=folder, capture_output=True, text=True, check=True).stdout, re.M)
                  if package != SYSTEM or not it.startswith(OTHER_TESTS)]
    seen = copy / "seen"
    for test in tests:
        key = f"{test.binary} {test.name}"
        if key not in known:
            seen.write_text("")
            start = time.monotonic()
            result = run(test.folder, test.binary, [test.name], longest, MUTANT_SEEN=str(seen.resolve()))
            test.seconds = round(time.monotonic() - start, 3)
            test.reached = {int(number) for number in seen.read_text().split()}
            known[key] = [result, test.seconds, sorted(test.reached)]
            if result != "passed":
                print(f"{result} without a mutant: {test.name}", flush=True)
        result, test.seconds, reached = known[key]
        test.reached = set(reached)
        test.passes = result == "passed" and test.seconds <= longest
    return [test for test in tests if test.passes]


def batches(tests, package):
    """Yields tests that are run together: those of the package first, and quick ones."""
    by_binary = defaultdict(list)
    for test in tests:
        by_binary[test.binary].append(test)
    quick, slow = [], []
    for group in by_binary.values():
        group.sort(key=lambda it: (it.seconds, it.name))
        at = 0
        while at < len(group):
            size, total = 0, 0.0
            while at + size < len(group) and (size == 0 or total + group[at + size].seconds < 0.5):
                total += group[at + size].seconds
                size += 1
            part = group[at:at + size]
            (quick if total < 0.5 else slow).append((part[0].package != package, total, part))
            at += size
    for _, total, part in sorted(quick, key=lambda it: it[:2]) + sorted(slow, key=lambda it: it[1]):
        yield total, part


def outcome(number, mutant, tests):
    """Returns what becomes of a mutant: "caught", "timeout" or "survived", and by which test or binary."""
    for total, part in batches(tests, mutant["package"]):
        names = [test.name for test in part]
        result = run(part[0].folder, part[0].binary, names, 10 * total + 5, MUTANT=str(number))
        if result != "passed":
            return ("caught" if result == "failed" else "timeout"), f"{part[0].package} {names[0]}"
    return "survived" if tests else "not reached", None


def read_results(path):
    """Returns the last result of each mutant."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, *result = line.split("\t")
        results[name] = result
    return results


def write_tables(mutants, dropped, results):
    """Writes both tables. Reasons stay as they are."""
    lines = SURVIVORS.read_text().splitlines() if SURVIVORS.exists() else []
    reasons = dict(line.split("\t")[1:] for line in lines if not line.startswith("#") and line.count("\t") == 2)
    rows = SCORE.read_text().splitlines() if SCORE.exists() else []
    before = {line.partition("\t")[0]: line for line in rows}
    counts = defaultdict(lambda: defaultdict(int))
    survivors, asked, folders = [], {}, {}
    for mutant in mutants.values():
        name = mutant["name"]
        folders[name] = mutant["file"].rpartition("/")[0]
        result = "not compiled" if name in dropped else results.get(name, ["not run"])[0]
        if result in ("survived", "not reached"):
            reason = reasons.get(name, "")
            survivors.append(f"{result}\t{name}\t{reason}".rstrip())
            result = "argued away" if reason else "survived"
        for row in (folders[name], mutant["package"]):
            counts[row][result] += 1
            if result == "survived":
                crates = set(results[name][1].split())
                asked[row] = asked.get(row, crates) & crates
    columns = ["not compiled", "not run", "caught", "timeout", "argued away", "survived"]
    table = "\t".join(["# folder", *columns, "score", "tests of"]) + "\n"
    kept = {row for row, of_row in counts.items() if row in before and of_row.keys() <= {"not compiled", "not run"}}
    survivors += [line for line in lines if folders.get(line.split("\t")[1] if "\t" in line else "") in kept]
    for row, of_row in sorted(counts.items()):
        if row in kept:
            table += before[row] + "\n"
            continue
        seen = of_row["caught"] + of_row["timeout"]
        share = f"{100 * seen / (seen + of_row['survived']):.1f}" if seen + of_row["survived"] else "-"
        crates = " ".join(sorted(asked.get(row, ()))) or "-"
        table += "\t".join([row, *(str(of_row[column]) for column in columns), share, crates]) + "\n"
    SCORE.write_text(table)
    SURVIVORS.write_text("# result\tmutant\treason\n" + "".join(f"{line}\n" for line in sorted(survivors)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--only", nargs="*", default=[""], help="starts of the files' paths")
    parser.add_argument("--tests", nargs="*", default=TESTED, help="the crates whose tests are run")
    parser.add_argument("--system", nargs="*", default=[], help="the targets of clr-tests that are run")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--built", action="store_true", help="the copy is up to date")
    parser.add_argument("--longest", type=float, default=20, help="seconds that a test may take alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write the tables")
    arguments = parser.parse_args()
    copy = arguments.folder.resolve()
    copy.mkdir(parents=True, exist_ok=True)
    target = (arguments.target or copy / "target").resolve()
    plan, dropped_file, reach = copy / "mutants.json", copy / "dropped.json", copy / "reach.json"
    if arguments.table:
        write_tables(listed(), json.loads(dropped_file.read_text()), read_results(copy / "results.tsv"))
        return
    if arguments.built:
        mutants = {int(number): it for number, it in json.loads(plan.read_text()).items()}
        dropped = json.loads(dropped_file.read_text())
    else:
        mutants, dropped = listed(), {}
        print(f"{len(mutants)} mutants", flush=True)
        compiled(copy, target, mutants, dropped)
        plan.write_text(json.dumps(mutants))
        dropped_file.write_text(json.dumps(dropped, indent=1))
        reach.unlink(missing_ok=True)
    results_file = copy / "results.tsv"
    known = json.loads(reach.read_text()) if reach.exists() else {}
    try:
        tests = tests_of(copy, target, arguments.tests, arguments.system, known, arguments.longest)
    finally:
        reach.write_text(json.dumps(known))
    by_mutant = defaultdict(list)
    for test in tests:
        for number in test.reached:
            by_mutant[number].append(test)
    asked = [name for package in arguments.tests for name in (
        [f"{SYSTEM}/{name}" for name in arguments.system] if package == SYSTEM and arguments.system else [package])]
    results = read_results(results_file)
    shard, count = map(int, arguments.shard.split("/"))
    chosen = [number for number, mutant in mutants.items()
              if number % count == shard % count and mutant["file"].startswith(tuple(arguments.only))
              and mutant["name"] not in dropped
              and (mutant["name"] not in results
                   or arguments.again and results[mutant["name"]][0] in ("survived", "not reached"))]
    print(f"{len(chosen)} mutants to run, {len(tests)} tests", flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool, results_file.open("a") as file:
        def one(number):
            mutant = mutants[number]
            result, test = outcome(number, mutant, by_mutant[number])
            # What survived before was asked before, too.
            before = results.get(mutant["name"], ["", ""])[1].split()
            file.write(f"{mutant['name']}\t{result}\t{test or ' '.join(sorted({*before, *asked}))}\n")
            file.flush()
        for _ in pool.map(one, chosen):
            pass


if __name__ == "__main__":
    main()
