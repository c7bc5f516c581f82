"""Adds a line to a table on stderr, and JSON to stdout: how many calls of a recording came out the same.

usage: clrsim run --json FILE | live_record.py RUNTIME WORKLOAD
Fails if one did not, or if there is none.
"""
import json
import sys

runtime, workload = sys.argv[1:]
file = json.loads(sys.stdin.readline())
counts = {name: file[name] for name in ("cases", "passed", "failed", "skipped", "inferred_walks")}
print(json.dumps({"runtime": runtime, "workload": workload, **counts}), flush=True)
print(f"{runtime:12} {workload:11} {counts['cases']:6} calls {counts['passed']:6} the same"
      f" {counts['failed']:4} different {counts['inferred_walks']:5} with deduced state", file=sys.stderr)
sys.exit(counts["failed"] > 0 or counts["passed"] == 0)
