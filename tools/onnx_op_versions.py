#!/usr/bin/env python3
"""Writes importers/onnx/op_versions.inc: in which versions the meaning of each ONNX operator changed.

    onnx_op_versions.py > importers/onnx/op_versions.inc

Needs the package "onnx"; its release decides how new the newest operators are.
"""

import onnx.defs

NEWEST = 27


def main():
    versions = {
        (schema.domain, schema.name, schema.since_version)
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain != "" or schema.since_version <= NEWEST
    }
    print("// Written by tools/onnx_op_versions.py from the package onnx; sorted.")
    print("// clang-format off")
    for domain, name, since in sorted(versions):
        print(f'{{"{domain}", "{name}", {since}}},')
    print("// clang-format on")


if __name__ == "__main__":
    main()
