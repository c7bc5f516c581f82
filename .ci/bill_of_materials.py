#!/usr/bin/env python3
"""Prints the bill of materials of a release: the crates in the tool and in libclrsim, as CycloneDX 1.5.

    .ci/bill_of_materials.py VERSION TARGET

Crates are those that `cargo metadata` resolves for the target, without the dependencies of tests and of builds.
"""

import json
import subprocess
import sys

ROOTS = {"clrsim", "clr-host"}


def materials(metadata):
    """Returns the packages that the roots link, each once, ascending by name and version."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left = [id for id in metadata["workspace_members"] if packages[id]["name"] in ROOTS]
    found = set()
    while left:
        id = left.pop()
        if id in found:
            continue
        found.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    return sorted((packages[id] for id in found), key=lambda it: (it["name"], it["version"]))


def component(package):
    """Returns a package as a component."""
    made = {
        "type": "library",
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
    }
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return made


def main():
    version, target = sys.argv[1:]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "clrsim", "version": version}},
        "components": [component(package) for package in materials(metadata)],
    }
    json.dump(bill, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
