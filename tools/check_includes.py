#!/usr/bin/env python3
"""Fails on an #include that goes against the arrows of the architecture.

    check_includes.py [ROOT]     check the tree at ROOT (default: the one that holds this script)

RULES says which folders the files of a folder may include; a folder may always include itself. Tests may include what
they like: *_test.*, test_*.*, and folders named testing or tests.
"""

import pathlib
import re
import sys

API = "include/tenon"  # tenon.hpp, status.hpp, c/
ABI = "include/tenon/plugin"
SDK = "include/tenon/sdk"
COMMON = [API, ABI, "core"]  # core/ itself holds version.h alone

# Folder -> what its files may include, besides themselves. The longest folder that fits a path counts.
RULES = {
    ABI: [],
    SDK: [ABI],
    API: [ABI],
    "core": [],
    "core/base": COMMON,
    "core/device": COMMON + ["core/base"],
    "core/graph": COMMON + ["core/base", "core/device"],
    "registry": COMMON + ["core/base", "core/graph"],
    "core/site": COMMON + ["core/base", "core/device", "core/graph", "registry"],
    "core/tuner": COMMON + ["core/base", "core/device", "core/graph", "registry", "core/site"],
    "core/memory": COMMON + ["core/base", "core/device", "core/graph", "registry", "core/site"],
    "core/plan": COMMON + ["core/base", "core/device", "core/graph", "registry", "core/site", "core/memory"],
    "core/runtime": COMMON
    + ["core/base", "core/device", "core/graph", "registry", "core/site", "core/memory", "core/plan"],
    "core/builder": COMMON
    + ["core/base", "core/device", "core/graph", "registry", "core/site", "core/tuner", "core/memory", "core/plan"],
    "api": COMMON
    + ["core/base", "core/device", "core/graph", "registry", "core/site", "core/tuner", "core/memory", "core/plan"]
    + ["core/runtime", "core/builder"],
    "kernels": [],
    "plugins/*": [ABI, SDK, "kernels", "plugins/common"],
    "importers/*": [ABI, SDK, "kernels", "plugins/common", "importers/common"],
    "pipeline": [API, ABI],
    "tools/*": [API, ABI, "pipeline"],
    # Shows what one library registers, which the public API does not tell before the library is part of a registry.
    "tools/tenon_plugin": COMMON + ["core/base", "core/graph", "registry"],
    "examples/*": [API, ABI, SDK],
    "bench": [API, ABI, "pipeline", "kernels"],
}
EXEMPT = ["tests"]  # folders of tests

TOP_FOLDERS = sorted({folder.split("/")[0] for folder in RULES} | set(EXEMPT))
SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The folder under which RULES knows a path, with * filled in; None if there is no rule for it."""
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        if folder in RULES or f"{'/'.join(parts[: length - 1])}/*" in RULES:
            return folder
    return None


def allowed_for(folder):
    return RULES.get(folder, RULES.get(folder.rsplit("/", 1)[0] + "/*"))


def is_test(path):
    *folders, name = path.split("/")
    return (
        folders[0] in EXEMPT
        or any(folder in ("testing", "tests") for folder in folders)
        or name.startswith("test_")
        or pathlib.PurePosixPath(name).stem.endswith("_test")
    )


def resolve(root, path, name, quoted):
    """The path of an included file in this tree, as the compiler would find it; None for one from elsewhere."""
    places = [root / path.rsplit("/", 1)[0]] if quoted else []
    for place in places + [root / "include", root]:
        file = (place / name).resolve()
        if file.is_file() and file.is_relative_to(root):
            return file.relative_to(root).as_posix()
    return name if name.split("/")[0] in TOP_FOLDERS else None


def check_file(root, path):
    faults = []
    folder = folder_of(path)
    if folder is None:
        return [f"{path}: no rule for this folder; add one to RULES in tools/check_includes.py"]
    allowed = allowed_for(folder)
    for number, line in enumerate((root / path).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        target = resolve(root, path, include[2], include[1] == '"')
        if target is None:
            continue
        owner = folder_of(target) or target.split("/")[0]
        if owner != folder and owner not in allowed:
            may = ", ".join([folder] + allowed)
            faults.append(f"{path}:{number}: {folder} may not include {target} of {owner}; it may include: {may}")
    return faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    faults = []
    count = 0
    for top in TOP_FOLDERS:
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix in SUFFIXES and file.is_file() and not is_test(path):
                count += 1
                faults += check_file(root, path)
    for fault in faults:
        print(fault, file=sys.stderr)
    if count == 0:
        print(f"no source files under {root}; give the root of the tree", file=sys.stderr)
        return 2
    print(f"{count} files, {len(faults)} includes against the arrows")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
