#!/usr/bin/env python3
"""Measures all that the chapter on speed says, and writes it: the text between the marks of `sim/src/book/speed.md`.

These are the tables of the benchmarks, each of which runs its peers in the same process; CPU seconds of `clrsim run`; and how
fast libFuzzer runs each target of `fuzz/Cargo.toml` from its seeds on one processor. The row of this version in the table of
releases gets the ratios of this run. A run takes half an hour; fuzzing needs nightly Rust and
cargo-fuzz. It ends with 1 if a target has failed. Nothing else should run on the machine: the page says how loaded it was.
"""

import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

sys.dont_write_bytecode = True

from shared import ROOT, TARGET, options, printed, replace  # noqa: E402

PAGE = ROOT / "sim/src/book/speed.md"
# The benchmarks by their marks.
BENCHES = {
    "unwind": ["-p", "clr-tests", "--bench", "unwind"],
    "dwarf": ["-p", "clr-unwind", "--bench", "dwarf"],
    "mixed": ["-p", "clr-tests", "--bench", "mixed"],
    "snapshot": ["-p", "clr-tests", "--bench", "snapshot"],
    "schedules": ["--manifest-path", "tests/benches/peers/Cargo.toml", "--bench", "schedules"],
    "histories": ["-p", "clr-tests", "--bench", "histories"],
}
# The ratios of the table of releases: the mark, and the rows and columns of the dividend and of the divisor.
RATIOS = [
    ("unwind", ("framehop 0.16, new cache", 2), ("clr-unwind, no cache", 2)),
    ("unwind", ("framehop 0.16, warm", 2), ("clr-unwind, warm", 2)),
    ("snapshot", ("a snapshot from the Frame chain", 2), ("the runtime's unwinding", 2)),
    ("schedules", ("clr-sim |", 4), ("shuttle", 4)),
]
# Without code of `unsafe`, sanitizer and traces of comparisons only cost time.
FLAGS = {"fuzz": ["-s", "none", "--no-trace-compares"], "asan": ["--features", "sanitizer"]}
# libFuzzer's weights by rare features search a list of thousands for each feature of each run.
OPTIONS = ["-entropic=0"]


def machine():
    """Returns the processor, its number, the system and the compiler."""
    model, file = platform.processor(), Path("/proc/cpuinfo")
    if file.exists():
        model = re.search(r"model name\s*: (.*)", file.read_text())[1]
    compiler = printed("rustc", "--version").split(" (")[0]
    return f"{model}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}, {compiler}"


def load():
    """Returns the average number of running processes in the last minute."""
    return f"Load before: {os.getloadavg()[0]:.1f}." if hasattr(os, "getloadavg") else ""


def bench(arguments):
    """Returns the Markdown that a benchmark prints, with the load before it."""
    printed("cargo", "bench", *arguments, "--no-run", "-q")
    before = load()
    text = printed("cargo", "bench", "-q", *arguments).strip()
    # A table needs an empty line before it, and after it.
    text = re.sub(r"^(?!\|)(.+)\n(?=\|)", r"\1\n\n", text, flags=re.M)
    text = re.sub(r"^(\|.*)\n(?![|\n])", r"\1\n\n", text, flags=re.M)
    return f"{text}\n\n{before}"


def cpu_seconds(*command, **settings):
    """Runs a command three times. Returns the CPU seconds that it takes, ascending, and what it prints."""
    samples = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = printed(*command, stderr=subprocess.DEVNULL, **settings)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        samples.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return *sorted(samples), text


def embedded():
    """Returns the CPU seconds that `clrsim run` takes for all embedded texts and recordings."""
    printed("cargo", "build", "-q", "--release")
    least, median, most, _ = cpu_seconds(TARGET / "release/clrsim", "run")
    return (f"| CPU seconds | median | least | most |\n| --- | --: | --: | --: |\n| `clrsim run`, all "
            f"embedded texts and recordings | {median:.1f} | {least:.1f} | {most:.1f} |")


def properties():
    """Returns the programs per CPU second that a property compares with the model, each at many stops."""
    built = printed("cargo", "test", "-q", "--profile", "bench", "-p", "clr-tests", "--test", "runtime", "--no-run",
                "--message-format", "json")
    binary = [it["executable"] for it in map(json.loads, built.splitlines()) if it.get("executable")][-1]
    before, test = load(), "properties::world_properties::snapshots_are_what_the_model_says"
    # The test itself, without cargo, which takes a second of the processor.
    least, median, most, text = cpu_seconds(binary, "--exact", test, "--nocapture", env={**os.environ, "CLR_TEST_CASES": "15"})
    programs, calls = (int(re.search(it, text)[1]) for it in (r"(\d+) programs", r"cases: (\d+)"))
    return (f"| programs per CPU second | median | least | most |\n| --- | --: | --: | --: |\n| with {calls / programs:.0f} "
            f"compared snapshots each | {programs / median:.0f} | {programs / most:.0f} | {programs / least:.0f} |\n\n"
            f"`CLR_TEST_CASES=15 cargo test --profile bench -p clr-tests --test runtime`, only `{test.split('::')[-1]}`: "
            f"{programs} programs. {before}")


def campaign(name, folder, binary, seconds):
    """Runs a fuzz target from its seeds. Returns its row of the table, and true if it has failed."""
    corpus, log = folder / name, folder / f"{name}.log"
    shutil.copytree(ROOT / "fuzz/seeds" / name, corpus, dirs_exist_ok=True)
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
    print(row, flush=True)
    return row, child.returncode != 0


def fuzz(seconds, flags, folder):
    """Returns the table of the fuzz targets, built with these flags, and the names of those that have failed. Corpora, logs
    and findings are left in the folder."""
    manifest = tomllib.loads((ROOT / "fuzz/Cargo.toml").read_text())
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "fuzz/target"))
    os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=0")
    printed("cargo", "+nightly", "fuzz", "build", *flags, "--target-dir", str(target))
    host = printed("rustc", "-vV").split("host: ")[1].split()[0]
    before, rows, failed = load(), [], []
    for name in (binary["name"] for binary in manifest["bin"]):
        row, fails = campaign(name, folder, target / host / "release" / name, seconds)
        rows.append(row)
        failed += [name] * fails
    return "\n".join([
        "| target | runs/s | edges | new inputs/min |", "| --- | --: | --: | --: |", *rows,
        f"\nlibFuzzer from the seeds, {seconds} s for each; seconds and minutes of processor time, one processor; "
        f"`cargo fuzz` with `{' '.join(flags)}`, libFuzzer with `{' '.join(OPTIONS)}`. {before} {machine()}."]), failed


def marked(name):
    """Returns the text between two marks of the page."""
    return PAGE.read_text().split(f"<!-- {name}:begin -->", 1)[1].split(f"<!-- {name}:end -->", 1)[0]


def number(text, row, column):
    """Returns the first number in a column of the table's row that begins like this."""
    found = [line for line in text.splitlines() if line.startswith(f"| {row}")]
    digits = re.search(r"[\d.]+", found[0].strip("|").split("|")[column]) if found else None
    return float(digits[0]) if digits else 0


def release():
    """Adds this version's row to the table of releases, or replaces it: the ratios of the page's figures to those of their peers."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    pairs = [(number(marked(mark), *one), number(marked(mark), *other)) for mark, one, other in RATIOS]
    cells = [f"{one / other:.1f}" if one and other else "–" for one, other in pairs]
    rows = [line for line in marked("releases").strip().splitlines() if not line.startswith(f"| {version} |")]
    replace(PAGE, "releases", "\n".join([*rows, f"| {version} | {' | '.join(cells)} |"]))


# The measurements of commands, by the marks that their tables stand between.
COMMANDS = {"embedded": embedded, "properties": properties}


def main():
    """Measures what the arguments name."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=[*BENCHES, *COMMANDS, "none"], help="marks, or `none`")
    parser.add_argument("--fuzz", type=int, metavar="SECONDS", help="measure the fuzz targets too, without sanitizer and traces")
    parser.add_argument("--asan", type=int, metavar="SECONDS", help="the same with AddressSanitizer and the traces")
    parser.add_argument("--corpora", type=Path, metavar="FOLDER", help="keep corpora, logs and findings of fuzz targets here")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only or [*BENCHES, *COMMANDS] if name != "none"]
    for name in wanted:
        print(name, flush=True)
        replace(PAGE, name, COMMANDS[name]() if name in COMMANDS else bench(BENCHES[name]))
    failed = []
    # In memory where there is such a folder: a campaign writes thousands of files in its first minutes.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as nowhere:
        for mark, flags in FLAGS.items():
            if seconds := getattr(arguments, mark):
                table, names = fuzz(seconds, flags, (arguments.corpora or Path(nowhere)).resolve() / mark)
                failed += names
                replace(PAGE, mark, table)
    # The line is of the benchmarks; the tables of fuzz targets name their machine themselves.
    if wanted:
        replace(PAGE, "machine_line", machine() + ".")
    release()
    if failed:
        raise SystemExit(f"these targets have failed: {', '.join(failed)}; --corpora keeps their logs and inputs")


main()
