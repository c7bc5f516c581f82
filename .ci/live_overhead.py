"""Measures what sampling takes from a program: processor time for each turn of a workload, without a profiler, with one that
samples once a second, and at higher rates. A table goes to stderr, one JSON object to stdout.

usage: live_overhead.py RUNTIME WORKLOAD SECONDS ROUNDS COMMAND...
COMMAND is a program that runs the workload for the number of seconds that is appended, and prints "… in N turns". The environment
has the recorder's variables. Rounds take turns, and the time of a process without a turn is taken off.
"""
import json
import os
import re
import statistics
import subprocess
import sys

runtime, workload, seconds, rounds, *command = sys.argv[1:]
RATES = {"none": None, "1/s": 1, "100/s": 100, "1000/s": 1000}


def run(rate, seconds):
    """Returns the processor time of a process in seconds, and its turns."""
    environment = dict(os.environ, CLR_RECORDER=f"mode=sample rate={rate} out=/dev/null format=folded")
    if rate is None:
        del environment["CORECLR_ENABLE_PROFILING"]
    process = subprocess.Popen([*command, workload, seconds, "0"], env=environment, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    turns = re.search(r" in (\d+) turns", text)
    if status or not turns:
        sys.exit(f"live: {runtime} {workload} ended with status {status}")
    return used.ru_utime + used.ru_stime, int(turns[1])


start = {name: [] for name in RATES}
turn = {name: [] for name in RATES}
for _ in range(int(rounds)):
    for name, rate in RATES.items():
        # Nothing is left to do after no time.
        at_start, _ = run(rate, "0")
        used, turns = run(rate, seconds)
        start[name].append(at_start)
        turn[name].append((used - at_start) / turns)
line = {"runtime": runtime, "workload": workload, "rounds": int(rounds)}
for name in RATES:
    more = [100 * (with_it / without - 1) for with_it, without in zip(turn[name], turn["none"])]
    line[name] = {
        "start_ms": round(1000 * statistics.median(start[name]), 1),
        "turn_us": round(1e6 * statistics.median(turn[name]), 2),
        "more_percent": round(statistics.median(more), 2),
        "more_percent_quartiles": [round(quartile, 2) for quartile in statistics.quantiles(more, n=4)[::2]],
    }
print(json.dumps(line), flush=True)
for name in RATES:
    one = line[name]
    low, high = one["more_percent_quartiles"]
    print(f"{runtime:12} {workload:11} {name:>7} {one['turn_us']:12.2f} us/turn {one['more_percent']:+6.2f} %"
          f" ({low:+.2f} to {high:+.2f}) start {one['start_ms']:6.1f} ms", file=sys.stderr)
