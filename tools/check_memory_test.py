#!/usr/bin/env python3
"""check_memory.py on small reports that were placed by hand: what it must accept, and what it must name."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent / "check_memory.py"


def value(name, bytes_, offset, first_use, last_use):
    return {"name": name, "bytes": bytes_, "offset": offset, "first_use": first_use, "last_use": last_use}


def layer(name, inputs, outputs, shares=()):
    return {
        "name": name,
        "inputs": inputs,
        "outputs": outputs,
        "shares": [{"output": o, "input": i, "in_place": in_place} for o, i, in_place in shares],
    }


def numbered(layers):
    return [layer | {"step": step} for step, layer in enumerate(layers)]


def chain():
    """x -> a -> b -> c -> d -> y, b in place of a. At step 2, a's buffer and c are alive: 512 + 256 bytes."""
    return {
        "layers": numbered([
            layer("make_a", ["x"], ["a"]),
            layer("make_b", ["a"], ["b"], [("b", "a", True)]),
            layer("make_c", ["b"], ["c"]),
            layer("make_d", ["c"], ["d"]),
            layer("make_y", ["d"], ["y"]),
        ]),
        "views": [],
        "values": [
            value("a", 300, 0, 0, 1),
            value("b", 300, 0, 1, 2),
            value("c", 256, 512, 2, 3),
            value("d", 500, 0, 3, 4),
        ],
        "memory": {"activation": 768, "activation_lower_bound": 768, "alignment": 256},
    }


def joined():
    """Two halves are made inside their whole, and the first half is read once more after that."""
    layers = numbered([
        layer("half1", ["x"], ["h1"]),
        layer("half2", ["x"], ["h2"]),
        layer("join", ["h1", "h2"], ["whole"], [("whole", "h1", False), ("whole", "h2", False)]),
        layer("use", ["whole", "h1"], ["y"]),
    ])
    join = layers.pop(2)
    return {
        "layers": layers,
        "views": [join],
        "values": [value("h1", 100, 0, 0, 3), value("h2", 100, 100, 1, 2), value("whole", 200, 0, 2, 3)],
        "memory": {"activation": 256, "activation_lower_bound": 256, "alignment": 256},
    }


def check(*reports, options=()):
    """Exit status, what was printed, and the messages."""
    with tempfile.TemporaryDirectory() as root:
        paths = []
        for number, report in enumerate(reports):
            paths.append(pathlib.Path(root, f"{number}.json"))
            paths[-1].write_text(report if isinstance(report, str) else json.dumps(report), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, SCRIPT, *options, *paths], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


class Memory(unittest.TestCase):
    def fault(self, report, *words, options=()):
        status, _, messages = check(report, options=options)
        self.assertEqual(status, 1)
        for word in words:
            self.assertIn(word, messages)

    def test_accepts(self):
        status, printed, messages = check(chain(), joined())
        self.assertEqual((status, messages), (0, ""))
        lines = printed.splitlines()
        self.assertEqual(lines[1].split()[:6], ["5", "4", "3", "768", "768", "1.0000"])
        self.assertEqual(lines[2].split()[:6], ["4", "3", "1", "256", "256", "1.0000"])

    def test_overlap(self):
        report = chain()
        report["values"][2]["offset"] = 256  # c over the end of b
        self.fault(report, "b (bytes 0 to 300, alive 1 to 2)", "c (bytes 256 to 512", "alive together")

    def test_sharing_that_no_layer_speaks_of(self):
        report = chain()
        report["layers"][1]["shares"] = []
        self.fault(report, "a (bytes 0 to 300", "b (bytes 0 to 300", "alive together")

    def test_written_over_while_needed(self):
        report = chain()
        report["values"][0]["last_use"] = 4
        self.fault(report, "make_b, step 1", "written over while still needed")

    def test_in_place_elsewhere(self):
        report = chain()
        report["values"][1]["bytes"] = 200
        self.fault(report, "make_b, step 1", "not the same bytes, in place")

    def test_part_that_sticks_out(self):
        report = joined()
        report["values"][1]["offset"] = 150
        self.fault(report, "join, step 2", "h2 (bytes 150 to 250", "none lies inside the other")

    def test_used_when_dead(self):
        report = chain()
        report["layers"][4]["inputs"].append("c")
        self.fault(report, "layer make_y, step 4, uses c")

    def test_places(self):
        report = chain()
        report["values"][2]["offset"] = 520
        self.fault(report, "c (bytes 520", "not aligned to 256", "beyond the arena of 768")

    def test_lower_bound(self):
        report = chain()
        report["memory"]["activation_lower_bound"] = 512
        self.fault(report, "the lower bound is 768 bytes, the report says 512")

    def test_ratio(self):
        report = chain()
        report["memory"]["activation"] = 1024
        self.fault(report, "1024 bytes is 1.333 times the lower bound of 768; expected at most 1.05")
        self.assertEqual(check(report, options=["--most", "1.34"])[0], 0)

    def test_names(self):
        report = chain()
        report["values"][3]["name"] = "c"
        self.fault(report, "same name")

    def test_no_report(self):
        self.fault("{", "Expecting")
        self.fault("{}", "no build report", "memory")
        self.assertEqual(check(chain(), "[]")[0], 1)


if __name__ == "__main__":
    unittest.main()
