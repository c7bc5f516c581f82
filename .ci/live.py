"""Adds up the results of the processes of one workload: a line of a table on stderr, JSON on stdout.

usage: live.py RUNTIME WORKLOAD POLICY PROCESSES CRASHES <RESULTS
Fails if there was a hang, a crash, a wrong frame or a false claim.
"""
import json
import statistics
import sys

runtime, workload, policy, processes, crashes = sys.argv[1:]
results = [json.loads(line) for line in sys.stdin]
sums = ("walks", "missed", "frames", "hangs", "wrong_frames", "allocations", "false_whole", "unjudged", "bridged",
        "complete", "late", "snapshots", "snapshot_frames_missing")
total = {name: sum(result[name] for result in results) for name in sums}
claims = {}
for result in results:
    for claim, count in result["claims"].items():
        claims[claim] = claims.get(claim, 0) + count
middle = {
    name: int(statistics.median(result[name] for result in results)) if results else 0
    for name in ("median_ns", "p95_ns", "twenty_frames_ns", "twenty_frames_p95_ns", "twenty_frames_again_ns")
}
line = {"runtime": runtime, "workload": workload, "policy": policy, "processes": int(processes),
        "crashes": int(crashes), **total, **middle, "claims": claims}
print(json.dumps(line), flush=True)
share = 100 * total["complete"] / max(total["walks"], 1)
print(f"{runtime:19} {workload:11} {total['walks']:7} walks {share:6.2f} % complete"
      f" {total['hangs']:2} hangs {crashes:>2} crashes {total['wrong_frames']:3} wrong frames"
      f" {total['false_whole']:3} false Whole {middle['twenty_frames_ns'] / 1000:6.1f} us/20 frames"
      f" (median {middle['median_ns'] / 1000:.1f}, p95 {middle['p95_ns'] / 1000:.1f} us)",
      file=sys.stderr)
faults = ("hangs", "wrong_frames", "allocations", "false_whole", "snapshot_frames_missing")
sys.exit(int(crashes) > 0 or any(total[name] for name in faults) or not results)
