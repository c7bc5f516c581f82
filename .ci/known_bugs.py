#!/usr/bin/env python3
"""Plants known bugs, and measures the time in which the fuzz targets find each.

    .ci/known_bugs.py FOLDER build [--traces]
    .ci/known_bugs.py FOLDER run [--seeds 5] [--seconds 20] [--shard 1/4] [--found] [--only BUG ...] [--options=OPTIONS]
    .ci/known_bugs.py FOLDER table first|now

`tests/known_bugs.tsv` has the bugs: the layer, the targets that could find each, and the place, in the columns
of `tests/planted.tsv`. `build` plants all of them in a copy of the sources (in FOLDER) and builds the targets
for a campaign without AddressSanitizer, with traces of comparisons or without; the variable MUTANT chooses a bug.
`run` starts a target for each bug with each seed of libFuzzer, from an empty corpus (with the target's dictionary, if
it has one), until it fails or has used the processor for the given time, and appends the result to
FOLDER/runs.tsv. What is there already is not repeated, so that a campaign can be continued, and several
machines can take a part each. A failure counts if the same input passes without the bug. `table` writes the medians to
`tests/known_bugs_found.tsv`: the columns of the first campaign, or those of the present one.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from mutants import ROOT
from planted import numbers_of, plant, put, read

BUGS = ROOT / "tests/known_bugs.tsv"
FOUND = ROOT / "tests/known_bugs_found.tsv"
LAYERS = ["walker", "runtime", "mixed", "schedule", "parser"]


def bugs():
    """Returns the rows of the bugs as `planted` wants them, and of each bug the layer and the targets."""
    described = {}
    for row in read()[1]:
        described.setdefault(row[0], []).append(row)
    rows, about = [], {}
    for line in BUGS.read_text().splitlines():
        if line.startswith("#"):
            continue
        bug, layer, targets, file, *code = line.split("\t")
        about[bug] = (layer, targets.split())
        rows += [[bug, "", "", file, *code]] if code else described[bug]
    return rows, about


def build(folder, traces):
    """Plants the bugs, and builds the targets."""
    copy, target = folder / "copy", folder / "target"
    plant(copy, bugs()[0])
    options = [] if traces else ["--no-trace-compares"]
    command = ["cargo", "+nightly", "fuzz", "build", "-s", "none", *options, "--target-dir", str(target)]
    subprocess.run(command, cwd=copy, check=True)


def processor_time(process):
    """Returns the seconds that a running process has used the processor for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def search(binary, bug, seed, seconds, artifact, options):
    """Runs a target with a bug. Returns whether it failed, the seconds, and the executions."""
    artifact.unlink(missing_ok=True)
    dictionary = ROOT / f"fuzz/dictionaries/{binary.name}.dict"
    words = [f"-dict={dictionary}"] if dictionary.exists() else []
    command = [binary, f"-seed={seed}", f"-exact_artifact_path={artifact}", "-print_final_stats=1",
               "-timeout=10", "-rss_limit_mb=3000", *options, *words]
    environment = dict(os.environ, MUTANT=str(bug))
    with open(artifact.with_suffix(".log"), "w+") as log:
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=artifact.parent)
        while True:
            pid, _, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if processor_time(child.pid) > seconds:
                # libFuzzer ends, and prints its statistics.
                child.send_signal(signal.SIGINT)
            time.sleep(0.05)
        child.returncode = 0
        log.seek(0)
        runs = re.findall(r"number_of_executed_units: (\d+)|^#(\d+)\s", log.read(), re.M)
    runs = max((int(one or other) for one, other in runs), default=0)
    return artifact.exists(), usage.ru_utime + usage.ru_stime, runs


def passes(binary, artifact):
    """Returns true if a target passes an input without a bug."""
    environment = dict(os.environ, MUTANT="0")
    done = subprocess.run([binary, artifact], env=environment, capture_output=True, check=False, cwd=artifact.parent)
    return done.returncode == 0


def run(folder, arguments):
    """Makes the runs that are missing."""
    rows, about = bugs()
    numbers = numbers_of(rows)
    results = folder / "runs.tsv"
    lines = [line.split("\t") for line in results.read_text().splitlines()] if results.exists() else []
    done = {tuple(line[:3]) for line in lines}
    found = {tuple(line[:2]) for line in lines if line[3] == "found"}
    part, parts = map(int, arguments.shard.split("/"))
    tasks = [(bug, target, seed) for seed in range(1, arguments.seeds + 1) for bug, (_, targets) in about.items()
             for target in targets if not arguments.only or bug in arguments.only]
    if arguments.found:
        tasks = [task for task in tasks if task[:2] in found]
    for bug, target, seed in tasks[part - 1::parts]:
        if (bug, target, str(seed)) in done:
            continue
        binary = folder / "target/x86_64-unknown-linux-gnu/release" / target
        artifact = folder / f"failure-{bug}-{target}-{seed}"
        options = arguments.options.split()
        failed, seconds, runs = search(binary, numbers[bug], seed, arguments.seconds, artifact, options)
        result = "-" if not failed else "found" if passes(binary, artifact) else "another"
        line = "\t".join([bug, target, str(seed), result, f"{seconds:.2f}", str(runs)])
        print(line, flush=True)
        with open(results, "a") as file:
            file.write(line + "\n")


def medians(folder):
    """Returns for each bug and target: in how many runs it was found, and the medians of seconds and executions of
    all runs. Where the median run did not find the bug, both are lower bounds."""
    runs = {}
    for line in (folder / "runs.tsv").read_text().splitlines():
        bug, target, _, result, seconds, executions = line.split("\t")
        runs.setdefault((bug, target), []).append((result == "found", float(seconds), int(executions)))
    table = {}
    for key, of in runs.items():
        found = sum(was for was, _, _ in of)
        # Those that were not found come last.
        of.sort(key=lambda it: (not it[0], it[1]))
        is_lower = "" if 2 * found > len(of) else ">"
        middle = of[len(of) // 2]
        executions = statistics.median_low(sorted(it[2] for it in of if it[0] == middle[0]))
        table[key] = [f"{found}/{len(of)}", f"{is_lower}{middle[1]:.1f}", f"{is_lower}{executions}"]
    return table


def table(folder, columns):
    """Writes the columns of a campaign, and a summary of the layers."""
    _, about = bugs()
    old = FOUND.read_text().splitlines() if FOUND.exists() else []
    old = {tuple(row[:3]): row[3:] for row in (line.split("\t") for line in old if not line.startswith("#"))}
    new = medians(folder)
    rows = []
    for bug, (layer, targets) in about.items():
        for target in targets:
            cells = (old.get((bug, layer, target), []) + ["-"] * 6)[:6]
            if (bug, target) in new:
                at = 0 if columns == "first" else 3
                cells[at:at + 3] = new[bug, target]
            rows.append([bug, layer, target, *cells])
    text = ["# Known bugs that the fuzz targets find from an empty corpus; .ci/known_bugs.py writes this table: in how many",
            "# runs, and the medians of the seconds of processor time and of the executions until then. `-`: not measured.",
            "# Bugs of each layer that most runs of some target find, in the first campaign and now:"]
    for layer in LAYERS:
        every = {row[0] for row in rows if row[1] == layer}
        counts = [len({row[0] for row in rows if row[1] == layer and row[at] != "-" and not row[at + 1].startswith(">")})
                  for at in (3, 6)]
        text.append(f"#   {layer}: {counts[0]} and {counts[1]} of {len(every)}")
    text.append("# bug\tlayer\ttarget\tfirst: runs\tseconds\texecutions\tnow: runs\tseconds\texecutions")
    put(FOUND, ("\n".join(text + ["\t".join(row) for row in rows]) + "\n").encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("action", choices=["build", "run", "table"])
    parser.add_argument("columns", nargs="?", choices=["first", "now"], default="now")
    parser.add_argument("--traces", action="store_true", help="with traces of comparisons")
    parser.add_argument("--seeds", type=int, default=5, help="number of runs")
    parser.add_argument("--seconds", type=float, default=20, help="processor time of a run")
    parser.add_argument("--shard", default="1/1", help="number and count of the parts")
    parser.add_argument("--found", action="store_true", help="repeat those alone that were found before")
    parser.add_argument("--options", default="-len_control=0 -entropic=0", help="options of libFuzzer")
    parser.add_argument("--only", nargs="*", metavar="BUG")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.action == "build":
        build(folder, arguments.traces)
    elif arguments.action == "run":
        run(folder, arguments)
    else:
        table(folder, arguments.columns)


if __name__ == "__main__":
    main()
