#!/usr/bin/env python3
"""check_includes.py on small trees: what it must accept, and what it must name."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent / "check_includes.py"


def check(files):
    """Exit status and messages for a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


class Arrows(unittest.TestCase):
    def test_along_the_arrows(self):
        status, messages = check(
            {
                "core/base/text.h": "#include <string>\n",
                "core/plan/plan.h": '#include "core/base/text.h"\n#include <tenon/status.hpp>\n',
                "include/tenon/status.hpp": "",
                "plugins/relu/relu.cc": '#include <tenon/sdk/plugin.hpp>\n#include "kernels/cpu/relu.h"\n',
                "include/tenon/sdk/plugin.hpp": '#include "../plugin/all.h"\n',
                "include/tenon/plugin/all.h": "",
                "core/base/text_test.cc": '#include "registry/registry.h"\n',
            }
        )
        self.assertEqual((status, messages), (0, ""))

    def test_names_line_folder_and_what_is_allowed(self):
        status, messages = check(
            {"core/base/text.h": '#include <string>\n\n#include "core/graph/graph.h"\n', "core/graph/graph.h": ""}
        )
        self.assertEqual(status, 1)
        self.assertIn("core/base/text.h:3: core/base may not include core/graph/graph.h", messages)
        self.assertIn("it may include: core/base, include/tenon", messages)

    def test_each_rule_that_outsiders_rely_on(self):
        for path, include in (
            ("plugins/relu/relu.cc", '"core/base/text.h"'),
            ("plugins/relu/relu.cc", '"plugins/matmul/matmul.h"'),
            ("plugins/relu/relu.cc", "<tenon/tenon.hpp>"),
            ("importers/darknet/darknet.cc", '"registry/registry.h"'),
            ("kernels/cpu/gemm.cc", "<tenon/plugin/abi.h>"),
            ("include/tenon/plugin/op.h", '"../sdk/op.hpp"'),
            ("include/tenon/sdk/op.hpp", "<tenon/tenon.hpp>"),
            ("core/runtime/engine.cc", '"core/builder/builder.h"'),
            ("core/builder/builder.cc", '"core/runtime/engine.h"'),
            ("pipeline/runner.cc", '"core/base/text.h"'),
            ("tools/tenon/main.cc", '"api/handles.h"'),
            ("examples/01_x/main.cc", '"pipeline/runner.h"'),
        ):
            with self.subTest(path=path, include=include):
                present = {"include/tenon/tenon.hpp": "", "include/tenon/plugin/abi.h": "", "include/tenon/sdk/op.hpp": ""}
                status, messages = check({**present, path: f"#include {include}\n"})
                self.assertEqual(status, 1)
                self.assertIn(f"{path}:1:", messages)

    def test_new_folder_of_core(self):
        status, messages = check({"core/new/new.cc": ""})
        self.assertEqual((status, messages), (0, ""))
        status, _ = check({"core/new/new.cc": '#include "core/base/text.h"\n'})
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
