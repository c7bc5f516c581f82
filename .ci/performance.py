#!/usr/bin/env python3
"""Measures all that the chapter on speed says, and writes it.

    .ci/performance.py [--only NAME ...] [--fuzz SECONDS] [--asan SECONDS] [--targets TARGET ...] [--corpora FOLDER]

replaces the text between the marks of `sim/src/book/speed.md`: the tables of the benchmarks, each of which
runs its peers in the same process; CPU seconds of `clrsim run`; and how fast libFuzzer runs each target of
`fuzz/Cargo.toml` from its seeds on one processor: with --fuzz without sanitizer and traces of comparisons, with --asan
with AddressSanitizer and the traces; --targets prints the rows of these targets alone, and writes no table. The row of this
version in the table of releases gets the ratios of this run. NAME is a mark. A run takes half an hour; unicorn needs cmake, a C
compiler and libclang, fuzzing needs nightly Rust and cargo-fuzz. It ends with 1 if a target has failed.

Nothing else should run on the machine: the page says how loaded it was.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "sim/src/book/speed.md"
PEERS = ["--manifest-path", "tests/benches/peers/Cargo.toml"]
# The benchmarks by their marks.
BENCHES = {
    "unwind": ["-p", "clr-tests", "--bench", "unwind"],
    "dwarf": ["-p", "clr-walker", "--bench", "dwarf"],
    "own_stack": [*PEERS, "--bench", "own_stack"],
    "mixed": ["-p", "clr-tests", "--bench", "mixed"],
    "snapshot": ["-p", "clr-tests", "--bench", "snapshot"],
    "machine": [*PEERS, "--bench", "unicorn"],
    "schedules": [*PEERS, "--bench", "schedules"],
    "histories": ["-p", "clr-tests", "--bench", "histories"],
    "switches": [*PEERS, "--bench", "switches"],
}
# Without code of `unsafe`, sanitizer and traces of comparisons only cost time.
FAST = ["-s", "none", "--no-trace-compares"]
# libFuzzer's weights by rare features search a list of thousands for each feature of each run.
OPTIONS = ["-entropic=0"]


def run(command, **options):
    """Returns what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, text=True, **options).stdout


def machine():
    """Returns the processor, its number, the system and the compiler."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    compiler = run(["rustc", "--version"], capture_output=True).split(" (")[0]
    return f"{model}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}, {compiler}"


def load():
    """Returns the average number of running processes in the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def bench(arguments):
    """Returns the Markdown that a benchmark prints, with the load before it."""
    run(["cargo", "bench", *arguments, "--no-run", "-q"])
    before = load()
    text = run(["cargo", "bench", "-q", *arguments], stdout=subprocess.PIPE).strip()
    # A table needs an empty line before it, and after it.
    text = re.sub(r"^(?!\|)(.+)\n(?=\|)", r"\1\n\n", text, flags=re.M)
    text = re.sub(r"^(\|.*)\n(?![|\n])", r"\1\n\n", text, flags=re.M)
    return f"{text}\n\nLoad before: {before}."


def cpu_seconds(command, environment=None):
    """Runs a command three times. Returns the CPU seconds that it takes, ascending, and what it prints."""
    samples = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        samples.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(samples), printed


def embedded():
    """Returns the CPU seconds that `clrsim run` takes for all embedded texts and recordings."""
    run(["cargo", "build", "-q", "--release"])
    tool = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/clrsim"
    (least, median, most), _ = cpu_seconds([tool, "run"])
    return (f"| CPU seconds | median | least | most |\n| --- | --: | --: | --: |\n| `clrsim run`, all "
            f"embedded texts and recordings | {median:.1f} | {least:.1f} | {most:.1f} |")


def properties():
    """Returns the programs per CPU second that a property compares with the model, each at many stops."""
    built = run(["cargo", "test", "-q", "--profile", "bench", "-p", "clr-tests", "--test", "runtime", "--no-run",
                 "--message-format", "json"], stdout=subprocess.PIPE)
    artifacts = [json.loads(line) for line in built.splitlines()]
    binary = [it["executable"] for it in artifacts if it.get("executable")][-1]
    before = load()
    test = "properties::world_properties::snapshots_are_what_the_model_says"
    # The test itself, without cargo, which takes a second of the processor.
    (least, median, most), printed = cpu_seconds(
        [binary, "--exact", test, "--nocapture"], {**os.environ, "CLR_TEST_CASES": "15"})
    programs = int(re.search(r"(\d+) programs", printed)[1])
    calls = int(re.search(r"cases: (\d+)", printed)[1])
    return (f"| programs per CPU second | median | least | most |\n| --- | --: | --: | --: |\n| with {calls / programs:.0f} "
            f"compared snapshots each | {programs / median:.0f} | {programs / most:.0f} | {programs / least:.0f} |\n\n"
            f"`CLR_TEST_CASES=15 cargo test --profile bench -p clr-tests --test runtime`, only `{test.split('::')[-1]}`: "
            f"{programs} programs. Load before: {before}.")


def campaign(name, folder, binary, seconds):
    """Runs a fuzz target from its seeds. Returns its row of the table, and true if it has failed."""
    corpus, log = folder / name, folder / f"{name}.log"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = ROOT / "fuzz/seeds" / name
    if seeds.exists():
        shutil.copytree(seeds, corpus, dirs_exist_ok=True)
    before = len(list(corpus.iterdir()))
    command = [binary, corpus, "-seed=1", *OPTIONS, f"-max_total_time={seconds}", "-print_final_stats=1",
               f"-artifact_prefix={folder}/{name}-"]
    with open(log, "w") as out:
        child = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
        _, child.returncode, usage = os.wait4(child.pid, 0)
    text = log.read_text(errors="replace")
    # A target that has failed prints no statistics.
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text) or re.findall(r"^#(\d+)", text, re.M) or [0]
    edges = (re.findall(r"cov: (\d+)", text) or ["–"])[-1]
    used, new = usage.ru_utime + usage.ru_stime, len(list(corpus.iterdir())) - before
    row = f"| `{name}` | {int(runs[-1]) / used:,.0f} | {edges} | {60 * new / used:,.0f} |"
    (folder / f"{name}.row").write_text(row)
    print(row, flush=True)
    return row, child.returncode != 0


def fuzz(seconds, flags, folder, only):
    """Returns the table of the fuzz targets, built with these flags, and the names of those that have failed. Corpora, logs
    and findings are left in the folder."""
    manifest = tomllib.loads((ROOT / "fuzz/Cargo.toml").read_text())
    names = [binary["name"] for binary in manifest["bin"]]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "fuzz/target"))
    os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=0")
    run(["cargo", "+nightly", "fuzz", "build", *flags, "--target-dir", str(target)])
    host = run(["rustc", "-vV"], capture_output=True).split("host: ")[1].split()[0]
    before = load()
    rows, failed = [], []
    for name in [name for name in names if not only or name in only]:
        done = folder / f"{name}.row"
        if done.exists():
            rows.append(done.read_text())
            continue
        row, fails = campaign(name, folder, target / host / "release" / name, seconds)
        rows.append(row)
        failed += [name] * fails
    return "\n".join([
        "| target | runs/s | edges | new inputs/min |", "| --- | --: | --: | --: |", *rows,
        f"\nlibFuzzer from the seeds, {seconds} s for each; seconds and minutes of processor time, one processor; "
        f"`cargo fuzz` with `{' '.join(flags)}`, libFuzzer with `{' '.join(OPTIONS)}`. "
        f"Load before: {before}. {machine()}."]), failed


def number(text, row, column):
    """Returns the first number in a column of the table's row that begins like this."""
    found = [line for line in text.splitlines() if line.startswith(f"| {row}")]
    cell = found[0].strip("|").split("|")[column] if found else ""
    digits = re.search(r"[\d.]+", cell)
    return float(digits[0]) if digits else None


def ratios(page):
    """Returns the ratios of the page's figures to those of their peers."""
    def of(one, other):
        return "–" if not one or not other else f"{one / other:.1f}"
    unwind, walk = marked(page, "unwind"), marked(page, "schedules")
    snapshot, machine_text = marked(page, "snapshot"), marked(page, "machine")
    return [
        of(number(unwind, "framehop 0.16, new cache", 2), number(unwind, "clr-walker, no cache", 2)),
        of(number(unwind, "framehop 0.16, warm", 2), number(unwind, "clr-walker, warm", 2)),
        of(number(snapshot, "a snapshot from the Frame chain", 2),
           number(snapshot, "the runtime's unwinding", 2)),
        of(number(machine_text, "mixed", 1), number(machine_text, "mixed", 3)),
        of(number(walk, "clr-sim |", 4), number(walk, "shuttle", 4)),
    ]


def marked(page, name):
    """Returns the text between two marks."""
    return page.split(f"<!-- {name}:begin -->", 1)[1].split(f"<!-- {name}:end -->", 1)[0]


def replace(name, text):
    """Writes a text between two marks of the page."""
    page = PAGE.read_text()
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = page.split(begin, 1)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


def release():
    """Adds this version's row to the table of releases, which is between the marks, or replaces it."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    page = PAGE.read_text()
    row = f"| {version} | {' | '.join(ratios(page))} |"
    rows = [line for line in marked(page, "releases").strip().splitlines()
            if not line.startswith(f"| {version} |")]
    replace("releases", "\n".join([*rows, row]))


# The measurements of commands, by the marks that their tables stand between.
COMMANDS = {"embedded": embedded, "properties": properties}


def main():
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*BENCHES, *COMMANDS, "none"], help="marks, or `none`")
    parser.add_argument("--fuzz", type=int, metavar="SECONDS", help="measure the fuzz targets too")
    parser.add_argument("--asan", type=int, metavar="SECONDS", help="the same with AddressSanitizer")
    parser.add_argument("--targets", nargs="+", default=[], help="of the fuzz targets these alone")
    parser.add_argument("--corpora", type=Path, metavar="FOLDER",
                        help="keep corpora, logs, findings and rows of fuzz targets here; rows that are there are not made again")
    arguments = parser.parse_args()
    wanted = arguments.only or [*BENCHES, *COMMANDS]
    for name in [name for name in wanted if name != "none"]:
        print(name, flush=True)
        replace(name, COMMANDS[name]() if name in COMMANDS else bench(BENCHES[name]))
    failed = []
    # In memory where there is such a folder: a campaign writes thousands of files in its first minutes.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as nowhere:
        folder = (arguments.corpora or Path(nowhere)).resolve()
        for mark, seconds, flags in [("fuzz", arguments.fuzz, FAST), ("asan", arguments.asan, ["--features", "sanitizer"])]:
            if seconds:
                table, names = fuzz(seconds, flags, folder / mark, arguments.targets)
                failed += names
                if not arguments.targets:
                    replace(mark, table)
    # The line is of the benchmarks; the tables of fuzz targets name their machine themselves.
    if wanted != ["none"]:
        replace("machine_line", machine() + ".")
    release()
    if failed:
        raise SystemExit(f"these targets have failed: {', '.join(failed)}; --corpora keeps their logs and inputs")


main()
