#!/usr/bin/env python3
"""Builds guests with mingw, and searches their histories under wine.

usage: .ci/wine_histories.py CARGO_FOLDER BUILD_FOLDER

CARGO_FOLDER has clrsim.exe and clr_recorder.dll, and BUILD_FOLDER gets the guests; libwinpthread-1.dll is there. .ci/wine_guests calls it. Profilers that
are right are searched twice, with the same result; of all others the first history of each outcome comes out again.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HOST = Path(__file__).resolve().parent.parent / "sim/host"
CLI = HOST.parent / "cli/tests/guests"
SAMPLERS = HOST / "tests/guests/samplers"
WINDOWS = HOST / "tests/guests/windows"

# The class of clr-recorder's profiler, which others ignore.
RECORDER = "3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11"

# The export is named in it.
CALL = """shows "A method calls an export."
function "App.Main" kind="jit" { body { p-invoke "Lib.Call" } }
function "Lib.Call" { export "%s" }
"""

# Source, mistake, text, histories, the outcomes.
PROFILERS = [
    (CLI / "thread_sampler.cpp", "RIGHT", CLI / "threads.kdl", 30, ["ends"]),
    (CLI / "thread_sampler.cpp", "WAIT_WITH_LOCK", CLI / "threads.kdl", 40,
     ["deadlock: profiler's lock 1, profiler's lock 2", "ends"]),
    (CLI / "thread_sampler.cpp", "RESUME_FORGOTTEN", CLI / "threads.kdl", 20, ["ends", "lost wake-up"]),
    (CLI / "thread_sampler.cpp", "PUBLISHED_LATE", CLI / "threads.kdl", 30,
     ["ends", "failed: EXCEPTION_ACCESS_VIOLATION"]),
    (CLI / "thread_sampler.cpp", "JOIN_UNDER_LOCK", CLI / "threads.kdl", 20,
     ["deadlock: end of a thread, profiler's lock 1", "ends"]),
    (CLI / "thread_sampler.cpp", "LOG_WHILE_SUSPENDED", SAMPLERS / "image.kdl", 20,
     ["deadlock: profiler's lock 1, suspended runtime", "ends"]),
    (CLI / "thread_sampler.cpp", "OLD_SEED", SAMPLERS / "image.kdl", 60,
     ["ends", "failed: a frame of a walk from a seed is not on the stack"]),
    (SAMPLERS / "request_sampler.cpp", "RIGHT", SAMPLERS / "requests.kdl", 20, ["ends"]),
    (SAMPLERS / "request_sampler.cpp", "PUBLISHED_UNDER_LOCK", SAMPLERS / "requests.kdl", 10, ["lost wake-up"]),
    (SAMPLERS / "allocation_sampler.cpp", "RIGHT", SAMPLERS / "allocations.kdl", 20, ["ends"]),
    (SAMPLERS / "allocation_sampler.cpp", "WAIT_IN_CALLBACK", SAMPLERS / "allocations.kdl", 20,
     ["deadlock: profiler's lock 1, suspension of the runtime", "ends"]),
    (WINDOWS / "suspending_sampler.cpp", "RIGHT", WINDOWS / "suspended.kdl", 30, ["ends"]),
    (WINDOWS / "suspending_sampler.cpp", "ALLOCATES_WHILE_SUSPENDED", WINDOWS / "suspended.kdl", 40,
     ["deadlock: process heap, suspension", "ends"]),
    (WINDOWS / "suspending_sampler.cpp", "LOG_WHILE_SUSPENDED", WINDOWS / "suspended.kdl", 20,
     ["deadlock: profiler's lock 1, suspension", "ends"]),
    (WINDOWS / "suspending_sampler.cpp", "RESUME_FORGOTTEN", WINDOWS / "suspended.kdl", 20,
     ["ends", "rule broken: ResumeForgotten"]),
    (WINDOWS / "suspending_sampler.cpp", "SEED_OF_ANOTHER_THREAD", WINDOWS / "suspended.kdl", 60,
     ["ends", "failed: a frame of a walk from a seed is not on the stack"]),
]
# Exports of win32.cpp, histories, and the outcomes.
CALLS = [
    ("section_and_condition", 10, ["ends"]),
    ("slim_locks", 10, ["ends"]),
    ("crossed_sections", 40, ["deadlock: profiler's lock 1, profiler's lock 2", "ends"]),
    ("events", 10, ["ends"]),
    ("event_for_one", 10, ["lost wake-up"]),
    ("semaphores", 10, ["ends"]),
    ("mutexes", 10, ["ends"]),
    ("mutex_kept", 10, ["deadlock: end of a thread, profiler's lock 1"]),
    ("addresses", 10, ["ends"]),
    ("address_not_woken", 60, ["ends", "lost wake-up"]),
    ("initialised_once", 10, ["ends"]),
    ("thread_begun_suspended", 10, ["ends"]),
    ("ends_of_threads", 10, ["ends"]),
    ("recursive_mutex", 10, ["ends"]),
    ("clocks", 10, ["ends"]),
    ("timers", 10, ["ends"]),
    ("functions_by_name", 5, ["ends"]),
    ("leaves_by_exit", 5, ["failed: ends the process by ExitProcess"]),
    ("leaves_by_abort", 5, ["failed: abort in leaves_by_abort"]),
    ("leaves_by_message", 5, ["failed: the profiler has left the simulation: it called GetMessageW"]),
    ("faults", 5, ["failed: EXCEPTION_ACCESS_VIOLATION in faults"]),
    ("divides", 5, ["failed: EXCEPTION_INT_DIVIDE_BY_ZERO in divides"]),
    ("overflows", 5, ["failed: EXCEPTION_STACK_OVERFLOW"]),
    ("throws", 5, ["the profiler's process ended with 0xc0000409"]),
    ("spins", 1, ["failed: the profiler has left the simulation: it has not given back control"]),
]


def compile_guest(source, flags, library):
    compiler = os.environ.get("CXX", "x86_64-w64-mingw32-g++-posix")
    subprocess.run(
        [compiler, "-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-static-libgcc",
         "-static-libstdc++", *flags, "-I", HOST / "include", "-I", CLI, source, "-o", library, "-lsynchronization"],
        check=True)


def search(tool, library, text, count):
    """Returns the object that the tool prints of a search."""
    command = ["wine", tool, "host", library, text, "--on", "net8-windows", "--schedules", str(count), "--timeout", "4",
               "--clsid", RECORDER, "--json"]
    environment = {**os.environ, "CLR_RECORDER": "mode=sample rate=500 out=recorder.folded"}
    output = subprocess.run(command, capture_output=True, text=True, cwd=library.parent, env=environment)
    try:
        return json.loads(output.stdout)
    except json.JSONDecodeError:
        sys.exit(f"wine_histories: {library.name}: {output.stdout}{output.stderr}")


def ends(found):
    """Returns the outcomes in order, without the functions that depend on what the compiler has inlined."""
    words = set()
    for outcome in found["outcomes"]:
        end = outcome["end"]
        if end.startswith(("failed: EXCEPTION_ACCESS_VIOLATION in std::", "failed: EXCEPTION_STACK_OVERFLOW in")):
            end = end.split(" in ")[0]
        words.add(end)
    return sorted(words)


def check(tool, row):
    library, text, count, outcomes = row
    found = search(tool, library, text, count)
    what = f"{library.name} over {text.name}"
    if ends(found) != outcomes:
        return f"{what}: {ends(found)} in place of {outcomes}"
    again = search(tool, library, text, count) if "RIGHT" in library.name else found
    if found != again or not all(outcome["repeats"] for outcome in found["outcomes"]):
        return f"{what}: the same search came out otherwise"
    return None


def main():
    built, build = (Path(argument).resolve() for argument in sys.argv[1:])
    build.mkdir(exist_ok=True)
    # Each history is a process, which starts faster without the symbols.
    tool = build / "clrsim.exe"
    recorder = build / "clr_recorder-RIGHT.dll"
    for name, stripped in [("clrsim.exe", tool), ("clr_recorder.dll", recorder)]:
        subprocess.run(["x86_64-w64-mingw32-strip", "-o", stripped, built / name], check=True)
    rows = []

    for source, mistake, text, count, outcomes in PROFILERS:
        library = build / f"{source.stem}-{mistake}.dll"
        compile_guest(source, [f"-DMISTAKE={mistake}"], library)
        rows.append((library, text, count, outcomes))
    # winpthreads in the library itself are seen as events, and as critical sections.
    library = build / "static-RIGHT.dll"
    compile_guest(CLI / "thread_sampler.cpp", ["-DMISTAKE=RIGHT", "-static"], library)
    rows.append((library, CLI / "threads.kdl", 10, ["ends"]))
    # A guest in Rust.
    rows.append((recorder, WINDOWS / "suspended.kdl", 20, ["ends"]))
    library = build / "win32.dll"
    compile_guest(WINDOWS / "win32.cpp", [], library)
    for export, count, outcomes in CALLS:
        text = build / f"{export}.kdl"
        text.write_text(CALL % export)
        rows.append((library, text, count, outcomes))
    with ThreadPoolExecutor(2) as pool:
        wrong = [why for why in pool.map(lambda row: check(tool, row), rows) if why]
    for why in wrong:
        print("wine_histories:", why, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"wine_histories: {len(rows)} guests had the expected outcomes")


main()
