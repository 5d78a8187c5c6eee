#!/usr/bin/env python3
"""Builds engines and lets tools/check_memory.py recompute the placement of their tensors from the build reports.

    memory_test.py TENON [--all]     the program, with TENON_PLUGIN_PATH set; --all: the models of TENON_MODELS_DIR, else
                                     the one that comes with the sources

Kernels are hardly measured (a time budget of 1 s): which of them wins does not matter here. Darknet networks that have no
weights file get random weights.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get("TENON_MODELS_DIR") or SOURCE.parent / "shared" / "models")
# Inputs whose dims the model leaves open.
SHAPES = {"silero_vad_16k_op15.onnx": ["--shape", "input=1x576"]}


def options(model):
    if model.suffix == ".cfg" and not model.with_suffix(".weights").exists():
        return ["--import-option", "random_weights=1"]
    return SHAPES.get(model.name, [])


def main():
    tenon, everything = sys.argv[1], sys.argv[2:] == ["--all"]
    models = [SOURCE / "configs/digits.yaml", SOURCE / "models/digits/digits.cfg"]
    if everything:
        models = sorted(path for path in MODELS.glob("*/*") if path.suffix in (".onnx", ".cfg"))
    if not models:
        print(f"[  SKIPPED ] {MODELS} holds no models; set TENON_MODELS_DIR to the folder that does")
        return os.environ.get("TENON_REQUIRE_DATA") == "1"
    with tempfile.TemporaryDirectory() as folder:
        reports, failed = [], []
        for number, model in enumerate(models):
            report = pathlib.Path(folder, f"{number}.{model.parent.name}.{model.name}.json")
            begin = time.monotonic()
            command = [tenon, "build", model, "--device", "cpu", "--time-budget", "1s", "-o", pathlib.Path(folder, "engine")]
            done = subprocess.run(
                [*command, "--report", report, *options(model)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
            )
            if done.returncode == 0:
                reports.append(report)
            else:
                failed.append(model)
                print(f"{model}: tenon build: exit status {done.returncode}, expected 0\n{done.stderr}")
            print(f"{model}: {time.monotonic() - begin:.0f} s", flush=True)
        wrong = subprocess.run([sys.executable, SOURCE / "tools/check_memory.py", *reports], check=False).returncode
        print(f"{len(reports)} models built, {len(failed)} not")
        return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
