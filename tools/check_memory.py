#!/usr/bin/env python3
"""Checks the activation memory of engines, from their build reports alone (docs/use.md, "The build report").

    check_memory.py [--most RATIO] REPORT...     reports that `tenon build --report` wrote

Prints one line a report. Exit status 1 if tensors that are alive at the same step overlap and do not share a buffer, if a
tensor is used outside its life or lies outside the arena, if the report's lower bound is not what the lives give, or if the
arena is larger than RATIO (default 1.05) times the lower bound.
"""

import argparse
import json
import sys


def overlap(a, b):
    return a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]


def inside(a, b):
    return b["offset"] <= a["offset"] and a["offset"] + a["bytes"] <= b["offset"] + b["bytes"]


def text(value):
    return f"{value['name']} (bytes {value['offset']} to {value['offset'] + value['bytes']}, alive {value['first_use']} to {value['last_use']})"


def check_lives(layers, values):
    """Every layer finds its tensors alive."""
    faults = []
    for layer in layers:
        step = layer["step"]
        for name in layer["inputs"] + layer["outputs"]:
            value = values.get(name)
            if value and not value["first_use"] <= step <= value["last_use"]:
                faults.append(f"layer {layer['name']}, step {step}, uses {text(value)} when it is not alive")
    return faults


def find_buffers(layers, values):
    """Lists of tensors that share bytes by the word of some layer, and the faults of these words."""
    parent = {name: name for name in values}

    def root(name):
        while parent[name] != name:
            name = parent[name]
        return name

    faults = []
    for layer in layers:
        step = layer["step"]
        for share in layer["shares"]:
            output, given = values[share["output"]], values[share["input"]]
            what = f"layer {layer['name']}, step {step}: {text(output)} and {text(given)}"
            if share["in_place"]:
                if (output["offset"], output["bytes"]) != (given["offset"], given["bytes"]):
                    faults.append(f"{what} are not the same bytes, in place")
                if given["last_use"] != step:
                    faults.append(f"{what}: written over while still needed")
            elif not inside(output, given) and not inside(given, output):
                faults.append(f"{what}: none lies inside the other")
            parent[root(output["name"])] = root(given["name"])
    buffers = {}
    for value in values.values():
        buffers.setdefault(root(value["name"]), []).append(value)
    return list(buffers.values()), faults


def lower_bound(buffers, alignment):
    """Most bytes alive at one step."""
    changes = {}
    for buffer in buffers:
        begin = min(value["offset"] for value in buffer)
        end = max(value["offset"] + value["bytes"] for value in buffer)
        size = (end - begin + alignment - 1) // alignment * alignment
        first = min(value["first_use"] for value in buffer)
        last = max(value["last_use"] for value in buffer)
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    most = alive = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most


def check_places(buffers, arena, alignment):
    faults = []
    placed = [(value, number) for number, buffer in enumerate(buffers) for value in buffer]
    for number, buffer in enumerate(buffers):
        begin = min(buffer, key=lambda value: value["offset"])
        if begin["offset"] % alignment:
            faults.append(f"{text(begin)} is not aligned to {alignment} bytes")
    placed.sort(key=lambda entry: entry[0]["first_use"])
    alive = []
    for value, number in placed:
        if value["offset"] + value["bytes"] > arena:
            faults.append(f"{text(value)} ends beyond the arena of {arena} bytes")
        alive = [entry for entry in alive if entry[0]["last_use"] >= value["first_use"]]
        for other, its_number in alive:
            if number != its_number and overlap(value, other):
                faults.append(f"{text(other)} and {text(value)} are alive together, and no layer lets them share bytes")
        alive.append((value, number))
    return faults


def check(report, most):
    """The line to print, and the faults."""
    memory = report["memory"]
    layers = sorted(report["layers"] + report["views"], key=lambda layer: layer["step"])
    arena, alignment = memory["activation"], memory["alignment"]
    values = {value["name"]: value for value in report["values"]}
    if len(values) != len(report["values"]):
        return "", ["two tensors have the same name"]
    buffers, faults = find_buffers(layers, values)
    faults += check_lives(layers, values) + check_places(buffers, arena, alignment)
    bound = lower_bound(buffers, alignment)
    if bound != memory["activation_lower_bound"]:
        faults.append(f"the lower bound is {bound} bytes, the report says {memory['activation_lower_bound']}")
    ratio = arena / bound if bound else 1.0
    if arena > most * bound:
        faults.append(f"the arena of {arena} bytes is {ratio:.3f} times the lower bound of {bound}; expected at most {most}")
    return f"{len(layers):6} {len(values):7} {len(buffers):7} {arena:12} {bound:12} {ratio:7.4f}", faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1.05, metavar="RATIO")
    parser.add_argument("reports", nargs="+", metavar="REPORT")
    arguments = parser.parse_args()
    print("layers tensors buffers        arena  lower bound   ratio")
    wrong = False
    for path in arguments.reports:
        try:
            with open(path, encoding="utf-8") as file:
                line, faults = check(json.load(file), arguments.most)
        except (OSError, ValueError) as error:
            line, faults = "", [str(error)]
        except (KeyError, TypeError) as error:
            line, faults = "", [f"is no build report: {error!r}"]
        print(f"{line} {path}")
        for fault in faults:
            print(f"{path}: {fault}", file=sys.stderr)
        wrong = wrong or bool(faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
