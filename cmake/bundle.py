#!/usr/bin/env python3
"""Packs a built tree so that it runs from any folder of another x86-64 Linux.

    bundle.py BUILD BUNDLE       fills the folder BUNDLE and writes BUNDLE.tar.xz

Holds the programs, libtenon and the plugins as they are installed, the test programs that find everything through
TENON_SOURCE_DIR and TENON_BUILD_DIR (those with a label of TEST_LABELS), the EXAMPLES, their libraries except the C
library's and CUDA's, the models and configurations, and run-gpu-tests.sh.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEST_LABELS = {"cuda"}
# Built outside the tree by tests of tests/install; each is a test of the bundle too: files, the first with arguments.
EXAMPLES = {
    "example_01_editable_timing_cache": (
        ["editable_timing_cache"],
        "--device cuda --engine engine.tenon --log build.log",
    ),
    "example_04_custom_layer_cuda": (
        ["normalize_picture_demo", "normalize_picture.tnp.so"],
        "--device cuda normalize_picture.tnp.so",
    ),
}
PLUGINS = ["breaks_gpu.tnp.so"]  # of tests/plugins, that the tests load
MODEL_FOLDERS = ["configs", "models"]
SCRIPTS = ["tests/onnx/onnxruntime_outputs.py"]  # that the tests run
LIMIT = 48 << 20  # bytes of the archive

# Part of every Linux (the C library), or of the CUDA installation of the machine that runs the bundle.
NOT_BUNDLED = re.compile(
    r"^(ld-linux|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|libresolv\.so|"
    r"libcuda|libcublas|libcudnn|libnvrtc|libnvJitLink|libnvidia)"
)

RUN_TESTS = """#!/bin/sh
# Runs the bundled tests of the GPU; prints the names of those that failed. Arguments: names of tests, or none for all.
cd "$(dirname "$0")" || exit 1
export TENON_SOURCE_DIR="$PWD" TENON_BUILD_DIR="$PWD" TENON_PLUGIN_PATH="$PWD/lib/tenon/plugins"
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
failed=""
[ $# -gt 0 ] || set -- $(cat tests/list.txt)
for test in "$@"; do
  echo "== $test"
  "tests/$test" || failed="$failed $test"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
echo "$# tests passed"
"""


def libraries_of(file):
    """{name: path} of the shared libraries that a file loads."""
    done = subprocess.run(["ldd", file], capture_output=True, text=True, check=False)
    missing = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("not found")]
    missing = [name for name in missing if not NOT_BUNDLED.match(name)]
    if missing:
        sys.exit(f"bundle.py: {file} needs {', '.join(missing)}, which ldd does not find")
    return {m[1]: m[2] for m in re.finditer(r"(\S+) => (/\S+)", done.stdout) if not NOT_BUNDLED.match(m[1])}


def add_tests(build, bundle):
    """Packs the tests with a label of TEST_LABELS, each as a script of its name; returns the names."""
    shown = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    names = []
    (bundle / "tests" / "bin").mkdir(parents=True)
    for test in json.loads(shown.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        if not TEST_LABELS & set(properties.get("LABELS", [])) or test["name"] in EXAMPLES:
            continue
        program, *arguments = test["command"]
        shutil.copy2(program, bundle / "tests" / "bin")
        device = [value for value in properties.get("ENVIRONMENT", []) if value.startswith("TENON_TEST_DEVICE=")]
        command = shlex.join(["env", *device, f"tests/bin/{pathlib.Path(program).name}", *arguments])
        add_script(bundle / "tests" / test["name"], command + ' "$@"')
        names.append(test["name"])
    return sorted(names)


def add_script(path, command):
    path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    path.chmod(0o755)


def add_examples(build, bundle):
    """Builds and packs the examples; returns the names of their tests."""
    subprocess.run(
        ["ctest", "--test-dir", build, "--output-on-failure", "-R", f"^({'|'.join(EXAMPLES)})$"],
        check=True,
        stdout=sys.stderr,
    )
    names = [name for name in EXAMPLES if (build / "tests/install/projects" / name).is_dir()]
    for name in names:
        files, arguments = EXAMPLES[name]
        (bundle / "examples" / name).mkdir(parents=True)
        for file in files:
            shutil.copy2(build / "tests/install/projects" / name / file, bundle / "examples" / name)
        add_script(bundle / "tests" / name, f"cd examples/{name} && exec ./{files[0]} {arguments}")
    return names


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: bundle.py BUILD BUNDLE")
    build, bundle = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(bundle, ignore_errors=True)
    subprocess.run(
        ["cmake", "--install", build, "--prefix", bundle, "--component", "runtime"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(bundle / "lib" / "cmake")
    names = add_tests(build, bundle)
    (bundle / "tests" / "plugins").mkdir()
    for plugin in PLUGINS:
        if (build / "tests" / "plugins" / plugin).is_file():
            shutil.copy2(build / "tests" / "plugins" / plugin, bundle / "tests" / "plugins")
    names += add_examples(build, bundle)
    (bundle / "tests" / "list.txt").write_text("".join(name + "\n" for name in names), encoding="utf-8")
    for folder in MODEL_FOLDERS:
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, bundle / folder)
    for script in SCRIPTS:
        (bundle / script).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / script, bundle / script)

    binaries = [file for file in bundle.rglob("*") if file.is_file() and file.open("rb").read(4) == b"\x7fELF"]
    libraries = {}
    for file in binaries:
        libraries.update(libraries_of(file))
    for name, path in sorted(libraries.items()):
        if not (bundle / "lib" / name).exists():
            shutil.copy2(os.path.realpath(path), bundle / "lib" / name)
            binaries.append(bundle / "lib" / name)
    subprocess.run(["strip", "--strip-unneeded", *binaries], check=True)
    runner = bundle / "run-gpu-tests.sh"
    runner.write_text(RUN_TESTS, encoding="utf-8")
    runner.chmod(0o755)

    archive = bundle.with_name(bundle.name + ".tar.xz")
    with tarfile.open(archive, "w:xz", preset=3) as tar:
        tar.add(bundle, bundle.name)
    size = archive.stat().st_size
    print(f"{archive}: {size / (1 << 20):.1f} MiB, {len(names)} tests, {len(libraries)} libraries")
    if size > LIMIT:
        sys.exit(f"bundle.py: {archive.name} is larger than {LIMIT >> 20} MiB")


if __name__ == "__main__":
    main()
