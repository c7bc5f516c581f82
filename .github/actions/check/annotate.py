#!/usr/bin/env python3
"""Runs scenarios with clrsim, and prints each failure as an annotation of GitHub; writes them as SARIF, and the run as JUnit.

Environment: PATHS, separated by blanks; RUNTIMES, as in `clrsim run --on`, or nothing; SARIF and JUNIT, the files to write;
TOOL, the program (default: clrsim). The exit code is that of `clrsim run`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

VERSION = "https://json.schemastore.org/sarif-2.1.0.json"


def findings(objects):
    """Returns file, line, column, rule and text of each failure and each problem."""
    for it in objects:
        if it.get("kind") == "diagnostic":
            help = f" ({it['help']})" if it.get("help") else ""
            yield it["file"] or "", it["line"] or 1, it["column"] or 1, it["code"], it["message"] + help
        elif it.get("kind") == "error":
            yield it.get("file") or "", 1, 1, "error", it["message"]
        for failure in it.get("failures") or []:
            yield it["file"], failure.get("line") or 1, failure.get("column") or 1, "not-as-expected", sentence(failure)


def sentence(failure):
    """Returns a failure in a sentence."""
    where = ", ".join(failure.get("runtimes") or [failure.get("generation") or ""])
    result = failure.get("result") or {}
    if isinstance(result, dict) and "expected" in result:
        return f"expected {result['expected']}, found {result['found']} on {where}"
    return f"another result than expected on {where}: clrsim run prints it"


def escaped(text, more=""):
    """Returns a text for a command of a workflow."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def sarif(found):
    """Returns the findings as SARIF 2.1.0."""
    results = [{"ruleId": rule, "level": "error", "message": {"text": text},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": file},
                                                    "region": {"startLine": line, "startColumn": column}}}]}
               for file, line, column, rule, text in found]
    rules = [{"id": rule} for rule in sorted({it[3] for it in found})]
    driver = {"name": "clrsim", "rules": rules}
    return {"$schema": VERSION, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def main():
    tool, runtimes = os.environ.get("TOOL", "clrsim"), os.environ.get("RUNTIMES", "")
    paths = os.environ["PATHS"].split()
    if not paths:
        # Without a path the tool runs its own scenarios.
        print("::error::no path of scenarios is given")
        return 2
    command = [tool, "run", *paths, *(["--on", runtimes] if runtimes else [])]
    made = subprocess.run([*command, "--json", "--limit", "all"], stdout=subprocess.PIPE, text=True, check=False)
    # GitHub knows files by their paths from the root, without "./".
    found = [(file and Path(file).as_posix(), *rest)
             for file, *rest in findings(json.loads(line) for line in made.stdout.splitlines() if line)]
    for file, line, column, rule, text in found:
        print(f"::error file={escaped(file, ':,')},line={line},col={column},title={escaped(f'clrsim {rule}', ':,')}::{escaped(text)}")
    Path(os.environ["SARIF"]).write_text(json.dumps(sarif(found), indent=1) + "\n")
    with open(os.environ["JUNIT"], "w") as junit:
        subprocess.run([*command, "--format", "junit"], stdout=junit, check=False)
    return made.returncode


if __name__ == "__main__":
    sys.exit(main())
