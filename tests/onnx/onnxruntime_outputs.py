#!/usr/bin/env python3
"""Outputs of ONNX Runtime on the CPU, to compare with: every output of MODEL and the inner tensors of --mark as FOLDER/N.npy.

Prints a line "N NAME" a file.
"""
import argparse
import pathlib

import numpy
import onnx
import onnxruntime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--input", action="append", nargs=2, default=[], metavar=("NAME", "FILE.npy"))
    parser.add_argument("--mark", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    model = onnx.load(options.model)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in options.mark)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {name: numpy.load(file) for name, file in options.input})
    for n, (name, value) in enumerate(zip(names, values)):
        numpy.save(options.folder / f"{n}.npy", value)
        print(n, name)


if __name__ == "__main__":
    main()
