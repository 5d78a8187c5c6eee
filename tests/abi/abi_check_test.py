"""What tools/abi_check.py accepts and what it rejects."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "abi_check.py"
GOOD = """#include <stdint.h>
/* A pair. frozen */
enum { TN_ONE = 1, TN_TWO }; /* numbers */
typedef struct TnPair {
  int32_t a; /* frozen in a member's comment counts for nothing */
  int32_t b[3];
} TnPair;
/* A table. */
struct TnTable {
  uint32_t struct_size;
  int32_t (*cells)[4];
  int32_t(TN_CALL* call)(struct TnTable* self, void(TN_CALL* body)(void*));
};
"""


class AbiCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.include = pathlib.Path(self.folder.name)
        (self.include / "tenon" / "plugin").mkdir(parents=True)
        self.write(GOOD)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text):
        (self.include / "tenon" / "plugin" / "x.h").write_text("#define TN_CALL\n" + text, encoding="utf-8")

    def check(self, *options):
        command = [sys.executable, "-S", str(TOOL), "--include", str(self.include), "--baseline"]
        command += [str(self.include / "recorded.txt"), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_prints_offsets(self):
        status, text = self.check("--print")
        self.assertEqual(status, 0, text)
        self.assertEqual(
            text.splitlines(),
            [
                "struct TnPair  size 16 align 4  frozen",
                "     0    4  int32_t a",
                "     4   12  int32_t b[3]",
                "struct TnTable  size 24 align 8",
                "     0    4  uint32_t struct_size",
                "     8    8  int32_t (*cells)[4]",
                "    16    8  int32_t(TN_CALL* call)(struct TnTable* self, void(TN_CALL* body)(void*))",
                "enum TN_ONE = 1",
                "enum TN_TWO = 2",
            ],
        )

    def test_accepts_what_was_recorded(self):
        self.assertEqual(self.check("--update")[0], 0)
        self.assertEqual(self.check(), (0, ""))

    def test_needs_a_record(self):
        status, text = self.check()
        self.assertEqual(status, 1)
        self.assertIn("--update", text)

    def test_any_change_fails_and_is_shown(self):
        self.check("--update")
        changes = [
            ("int32_t a;", "int64_t a;", "+     0    8  int64_t a"),
            ("TN_TWO", "TN_TWO = 5", "+enum TN_TWO = 5"),
            ("struct TnTable* self, ", "", "+    16    8  int32_t(TN_CALL* call)(void(TN_CALL* body)(void*))"),
        ]
        for old, new, shown in changes:
            self.write(GOOD.replace(old, new))
            status, text = self.check()
            self.assertEqual(status, 1)
            self.assertIn(shown, text)

    def test_a_struct_needs_its_size_or_the_word(self):
        for old, new, name in [("frozen */\nenum", "*/\nenum", "TnPair"), ("uint32_t struct_size;\n", "", "TnTable")]:
            self.write(GOOD.replace(old, new))
            status, text = self.check("--print")
            self.assertEqual(status, 1)
            self.assertIn(f"{name} has neither", text)

    def test_a_form_that_it_cannot_read_fails(self):
        self.write(GOOD + "typedef struct { int32_t x; } TnNameless;\n")
        status, text = self.check("--print")
        self.assertEqual(status, 1)
        self.assertIn("in a form that this tool does not read", text)

    def test_headers_must_compile_alone(self):
        self.assertEqual(self.check("--headers"), (0, ""))
        self.write(GOOD + "typedef struct TnNew { unknown_t x; } TnNew;\n")
        self.assertEqual(self.check("--headers")[0], 1)


if __name__ == "__main__":
    unittest.main()
