#!/usr/bin/env python3
"""Writes ONNX models of one or a few nodes, one or more for each operator, into a folder: what a corpus starts from.

    python3 tests/fuzz/onnx_seeds.py FOLDER

Needs Python's package onnx. Shapes and attributes are tried at random, and kept are models in which onnx's strict shape
inference finds nothing wrong; `./dev fuzz onnx` then keeps in the corpus those that reach code that no other one does.
"""
import os
import random
import sys

import numpy
import onnx
import onnx.defs
from onnx import TensorProto, helper, numpy_helper, shape_inference

TRIES, KEPT = 400, 3
FLOAT, INT64, BOOL, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
SHAPES = [(), (1,), (3,), (4,), (2, 3), (4, 4), (1, 3, 4), (1, 1, 4, 4), (1, 2, 4, 4), (2, 2, 3, 3), (1, 2, 3, 3, 3)]
# What an attribute of this name may be, whatever the operator.
ATTRIBUTES = {
    "axes": [[0], [1], [-1], [0, 1]], "axis": [0, 1, -1], "to": [1, 6, 7, 9, 10, 16], "perm": [[1, 0], [0, 2, 1], [0, 2, 3, 1]],
    "kernel_shape": [[2], [2, 2], [3, 3], [2, 2, 2]], "strides": [[1], [2, 2], [1, 1, 1]], "pads": [[1, 1], [1, 1, 1, 1]],
    "dilations": [[1], [1, 2]], "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], "group": [1, 2],
    "equation": ["ij,jk->ik", "bij->bji", "ii", "...i->..."], "hidden_size": [3], "direction": ["forward", "reverse", "bidirectional", "LEFT"],
    "blocksize": [2], "num_groups": [1, 2], "scales": [[1.0, 2.0], [1.0, 1.0, 2.0, 2.0]], "mode": ["linear", "nearest", "cubic", "constant",
    "reflect", "edge", "DCR", "CRD", "fmod", "TF", "IDF", "TFIDF", "avg"], "pooled_shape": [[1, 1], [2, 2]],
    "spatial_scale": [1.0], "q_num_heads": [2], "kv_num_heads": [1, 2], "num_heads": [2], "split": [[1, 1], [1, 2]], "num_outputs": [2],
    "min_gram_length": [1], "max_gram_length": [2], "max_skip_count": [0, 1], "ngram_counts": [[0, 2]], "ngram_indexes": [[0, 1, 2]],
    "pool_int64s": [[1, 2, 1, 2]], "reduction": ["mean", "sum", "none", "add", "mul", "max", "min"], "shape": [[2, 3], [0, -1]],
    "value_float": [1.0], "value_ints": [[1, 2]], "size": [3], "p": [1, 2], "output_height": [2], "output_width": [2],
}


def contents(random_, dtype, shape):
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    values = numpy.asarray([random_.choice([0, 1, 1, 2, 3, -1, 4]) for _ in range(int(numpy.prod(shape, dtype=int)))])
    return (values % 2 if kind == bool else abs(values) if kind.kind == "u" else values).astype(kind).reshape(shape)


def value_of(schema_attribute, random_):
    if schema_attribute.name in ATTRIBUTES:
        return random_.choice(ATTRIBUTES[schema_attribute.name])
    kind = schema_attribute.type
    if kind == onnx.defs.OpSchema.AttrType.INT:
        return random_.choice([0, 1, 2])
    if kind == onnx.defs.OpSchema.AttrType.FLOAT:
        return random_.choice([0.5, 1.0])
    if kind == onnx.defs.OpSchema.AttrType.INTS:
        return random_.choice([[1], [1, 1]])
    if kind == onnx.defs.OpSchema.AttrType.TENSOR:
        return numpy_helper.from_array(contents(random_, random_.choice([FLOAT, INT64]), random_.choice([(1,), ()])))
    return None


def one_node(schema, opset, random_):
    """A model of one node; None if types are of no use here."""
    types, inputs, initializers, names = {}, [], [], []
    for index, formal in enumerate(schema.inputs):
        if formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional and random_.random() < 0.5:
            names.append("")
            continue
        count = random_.choice([1, 2, 3]) if formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic else 1
        allowed = [kind for kind in ("tensor(float)", "tensor(int64)", "tensor(bool)", "tensor(uint8)", "tensor(int8)", "tensor(int32)")
                   if kind in formal.types]
        if not allowed:
            return None
        chosen = types.setdefault(formal.type_str, allowed[0] if random_.random() < 0.7 else random_.choice(allowed))
        dtype = {"tensor(float)": FLOAT, "tensor(int64)": INT64, "tensor(bool)": BOOL, "tensor(uint8)": UINT8,
                 "tensor(int8)": TensorProto.INT8, "tensor(int32)": TensorProto.INT32}[chosen]
        for _ in range(count):
            name = "i%d" % len(names)
            names.append(name)
            shape = random_.choice(SHAPES)
            if index > 0 and random_.random() < 0.7 or random_.random() < 0.1:
                initializers.append(numpy_helper.from_array(contents(random_, dtype, shape), name))
            else:
                inputs.append(helper.make_tensor_value_info(name, dtype, shape))
    while names and not names[-1]:
        names.pop()
    attributes = {}
    for name, attribute in schema.attributes.items():
        if attribute.required or random_.random() < 0.3:
            value = value_of(attribute, random_)
            if value is not None:
                attributes[name] = value
            elif attribute.required:
                return None
    outputs = ["o%d" % n for n in range(max(schema.min_output, random_.choice([1, len(schema.outputs)])))]
    try:
        node = helper.make_node(schema.name, names, outputs, **attributes)
    except (TypeError, ValueError):
        return None
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], initializers)
    return model_of(graph, opset)


def model_of(graph, opset=17, **more):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("local", 1)], ir_version=8,
                             producer_name="", **more)


def is_sound(model):
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return True
    except Exception:  # of whatever kind
        return False


def scalar(name, value, dtype):
    return helper.make_tensor(name, dtype, [], [value])


def structures():
    """Bodies, functions, sequences and external data."""
    info, node = helper.make_tensor_value_info, helper.make_node
    x, y = info("x", FLOAT, [2, 3]), onnx.ValueInfoProto(name="y")

    def graph(nodes, initializers=(), outputs=(y,)):
        return helper.make_graph(nodes, "g", [x], list(outputs), list(initializers))

    def branch(op):
        return helper.make_graph([node(op, ["x"], ["b"])], op, [], [info("b", FLOAT, [2, 3])])

    body = helper.make_graph([node("Relu", ["s"], ["t"]), node("Identity", ["t"], ["u"])], "body",
                             [info("i", INT64, []), info("c", BOOL, []), info("s", FLOAT, [2, 3])],
                             [info("c", BOOL, []), info("t", FLOAT, [2, 3]), info("u", FLOAT, [2, 3])])
    step = helper.make_graph([node("Add", ["h", "e"], ["n"]), node("Identity", ["n"], ["m"])], "step",
                             [info("h", FLOAT, [3]), info("e", FLOAT, [3])], [info("n", FLOAT, [3]), info("m", FLOAT, [3])])
    each = helper.make_graph([node("Neg", ["e"], ["n"])], "each", [info("e", FLOAT, [2, 3])], [info("n", FLOAT, [2, 3])])
    yes, rounds, zero = scalar("yes", 1, BOOL), scalar("rounds", 3, INT64), helper.make_tensor("zero", FLOAT, [3], [0, 0, 0])
    yield model_of(graph([node("If", ["yes"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))], [yes]))
    yield model_of(graph([node("Loop", ["rounds", "yes", "x"], ["y", "all"], body=body)], [yes, rounds]))
    yield model_of(graph([node("Scan", ["zero", "x"], ["y", "all"], body=step, num_scan_inputs=1)], [zero]))
    yield model_of(graph([node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceMap", ["s"], ["t"], body=each),
                          node("SequenceInsert", ["t", "x"], ["u"]), node("SequenceAt", ["u", "one"], ["y"])], [scalar("one", 1, INT64)]))
    yield model_of(graph([node("SplitToSequence", ["x"], ["s"], axis=1), node("SequenceErase", ["s", "one"], ["e"]),
                          node("ConcatFromSequence", ["e"], ["y"], axis=1)], [scalar("one", 1, INT64)]))
    twice = helper.make_function("local", "Twice", ["a"], ["b"], [node("Elu", ["a"], ["c"]), node("Add", ["a", "c"], ["b"])],
                                 [helper.make_opsetid("", 17)], ["alpha"])
    reference = twice.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "alpha", onnx.AttributeProto.FLOAT
    yield model_of(graph([node("Twice", ["x"], ["y"], domain="local", alpha=2.0)]), functions=[twice])
    outside = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data.bin"), ("offset", "8"), ("length", "24")):
        outside.external_data.add(key=key, value=value)
    yield model_of(graph([node("Mul", ["x", "w"], ["y"])], [outside]))
    # Shapes that are computed and folded.
    yield model_of(graph([node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["d"]), node("Unsqueeze", ["d", "axes"], ["v"]),
                          node("Concat", ["v", "minus"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])],
                         [scalar("one", 1, INT64), helper.make_tensor("axes", INT64, [1], [0]), helper.make_tensor("minus", INT64, [1], [-1])]))
    yield model_of(graph([node("QuantizeLinear", ["x", "k", "z"], ["q"]), node("DequantizeLinear", ["q", "k", "z"], ["y"])],
                         [scalar("k", 0.5, FLOAT), scalar("z", 3, UINT8)]))
    for dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT4, TensorProto.FLOAT8E4M3FN, TensorProto.UINT32):
        yield model_of(graph([node("Cast", ["w"], ["f"], to=FLOAT), node("Add", ["x", "f"], ["y"])],
                             [helper.make_tensor("w", dtype, [3], [1, 2, 3])]), 21)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    random_ = random.Random(1)
    models = [("structure%d" % n, model) for n, model in enumerate(structures())]
    missing = []
    for opset in (13, 22):
        for name in sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}):
            try:
                schema = onnx.defs.get_schema(name, opset)
            except onnx.defs.SchemaError:
                continue
            found = []
            for _ in range(TRIES):
                model = one_node(schema, opset, random_)
                if model is not None and is_sound(model):
                    found.append(model)
                if len(found) == KEPT:
                    break
            if not found:
                missing.append("%s-%d" % (name, opset))
            models += [("%s-%d-%d" % (name, opset, n), model) for n, model in enumerate(found)]
    for name, model in models:
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
    print("%d models; none of: %s" % (len(models), " ".join(missing)))


if __name__ == "__main__":
    main()
