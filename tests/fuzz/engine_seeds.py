#!/usr/bin/env python3
"""Builds models and writes their engines as inputs of the fuzz target engine: sections without header and checksums.

    python3 tests/fuzz/engine_seeds.py TENON OUT_FOLDER MODEL...

TENON is the program. Models that it cannot build are left out. A MODEL can bring options of `tenon build`, in one
argument: 'model.onnx --shape x=1x3,4x3,8x3'.
"""
import os
import shlex
import struct
import subprocess
import sys
import tempfile


def main():
    tenon, out, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        engine = os.path.join(folder, "model.engine")
        for model, *options in map(shlex.split, models):
            built = subprocess.run([tenon, "build", model, *options, "-o", engine, "--device", "cpu"], capture_output=True,
                                   check=False)
            if built.returncode != 0:
                continue
            with open(engine, "rb") as file:
                data = file.read()
            header = dict(line.split(": ", 1) for line in data[:4096].decode().split("\n") if ": " in line)
            (plan_at, plan_size), (at, size) = ([int(word) for word in header[key].split()[:2]] for key in ("plan", "constants"))
            with open(os.path.join(out, os.path.splitext(os.path.basename(model))[0]), "wb") as file:
                file.write(struct.pack("<I", plan_size) + data[plan_at:plan_at + plan_size] + data[at:at + size])
            count += 1
    print("%d of %d models" % (count, len(models)))


if __name__ == "__main__":
    main()
