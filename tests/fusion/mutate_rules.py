#!/usr/bin/env python3
"""Checks that the tests of the fusion rules bite: each rule switched off, and each rule broken, has to fail one of them.

    mutate_rules.py SOURCE WORK [--only REGEX] [--seeds N]

Copies the tree SOURCE to WORK, builds there, and then, rule by rule as the library lists them,
  - runs fusion_rules_test with the rule switched off ($TENON_FUSION_DISABLED),
  - makes each change of MUTANTS in the copy, builds what depends on it, and runs fusion_rules_test and, if that passes,
    fusion_random_graphs_test with N seeds (default 300).
Prints a line each. Exit status 1 if something passes all tests, or a rule has no mutant. SOURCE is only read; WORK is
made equal to it first, and kept, so that the next run builds less.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

ACTIVATIONS = "plugins/activation/activation_rules.cc"
ATTENTION = "plugins/attention/attention_rules.cc"
ATTENTION_LAYOUT = "plugins/attention/attention_layout_rules.cc"
BATCH_NORM = "plugins/batch_norm/batch_norm_fold.cc"
EPILOGUE = "core/graph/epilogue.cc"
PLACEMENT = "core/plan/placement.cc"
SIBLINGS = "core/builder/siblings.cc"
DUPLICATES = "core/graph/duplicates.cc"
CHAINS = "core/graph/pointwise_chains.cc"
CONV = "plugins/conv2d/conv2d_rules.cc"
DENSE = "plugins/fully_connected/fully_connected_rules.cc"
FOLDING = "core/graph/passes.cc"
NORM = "plugins/layer_norm/layer_norm_rules.cc"
PAD = "plugins/pad/pad_rules.cc"
QUANTIZE = "plugins/quantize/quantize_rules.cc"
RESHAPE = "plugins/reshape/reshape_rules.cc"
RESHAPE_FORM = "plugins/common/reshape_form.h"
SHUFFLE = "plugins/channel_shuffle/channel_shuffle_rules.cc"
TRANSPOSE = "plugins/transpose/transpose_rules.cc"
PATTERN = "core/graph/pattern.cc"
SOFTMAX = "plugins/softmax/softmax_rules.cc"


class Mutant(NamedTuple):
    rule: str  # an id, or words for what all rules share
    what: str
    file: str
    text: str  # occurs once in the file
    replacement: str


def activation(form, what, text, replacement):
    return Mutant(f"tenon.fuse_{form}/1", what, ACTIVATIONS, text, replacement)


THREE = '",\n       "tenon.hard_swish/1",\n       {{"three", 3}, '
HARD_SWISH = "$six:const)),$divisor:const)" + THREE
HARD_SWISH_GATE = "$six:const),$divisor:const))" + THREE
GELU = 'tenon.mul/1($x,$root:const)),$one:const)),$half:const)",\n       "tenon.gelu/1"'
GELU_HALF_FIRST = 'tenon.mul/1($x,$root:const)),$one:const))",\n       "tenon.gelu/1"'
GELU_GATE = 'tenon.mul/1($x,$root:const)),$one:const),$half:const))",\n       "tenon.gelu/1"'
RECIPROCAL = 'tenon.reciprocal/1(" + deviation("$x") + "))",\n       '
GELU_CONSTANTS = ',\n       {{"root", std::sqrt(2.0)}, {"one", 1}'

MUTANTS = [
    activation("swish", "another activation", '"tenon.swish/1"', '"tenon.hard_swish/1"'),
    activation("swish", "any gate", "tenon.logistic/1($x)", "tenon.logistic/1($y)"),
    activation("mish", "another activation", '"tenon.mish/1"', '"tenon.swish/1"'),
    activation("mish", "any gate", "tenon.softplus/1($x)", "tenon.softplus/1($y)"),
    activation("hard_swish", "any offset", HARD_SWISH, HARD_SWISH.replace('{"three", 3}, ', "")),
    activation("hard_swish", "dims are not looked at", "if (graph.value_dims(", "if (false && graph.value_dims("),
    activation("hard_swish_gate", "any offset", HARD_SWISH_GATE, HARD_SWISH_GATE.replace('{"three", 3}, ', "")),
    activation("gelu", "its approximation", GELU, GELU.replace("gelu", "gelu_tanh")),
    activation("gelu_tanh", "what it approximates", '"tenon.gelu_tanh/1"', '"tenon.gelu/1"'),
    activation("gelu_half_first", "a factor is a divisor", "factor ? 1 / number", "factor ? number + 0"),
    activation("gelu", "any constants", "1e-5 * std::abs(expected)", "1 + std::abs(expected)"),
    activation("gelu_half_first", "its approximation", GELU_HALF_FIRST, GELU_HALF_FIRST.replace("gelu", "gelu_tanh")),
    activation("gelu_half_first", "any one", GELU_HALF_FIRST + GELU_CONSTANTS,
               (GELU_HALF_FIRST + GELU_CONSTANTS).replace(', {"one", 1}', "")),
    activation("gelu_gate", "its approximation", GELU_GATE, GELU_GATE.replace("gelu", "gelu_tanh")),
    activation("gelu_gate", "any one", GELU_GATE + GELU_CONSTANTS,
               (GELU_GATE + GELU_CONSTANTS).replace(', {"one", 1}', "")),
    Mutant("tenon.fold_batch_norm/1", "sign of the bias", BATCH_NORM,
           "own * affine.factor + affine.offset", "own * affine.factor - affine.offset"),
    Mutant("tenon.fold_batch_norm/1", "bias without the factor", BATCH_NORM,
           "own * affine.factor + affine.offset", "own + affine.offset"),
    Mutant("tenon.fold_batch_norm/1", "own bias is lost", BATCH_NORM, "own * affine.factor + ", "0 * own + "),
    Mutant("tenon.fold_batch_norm/1", "weights without the factor", BATCH_NORM,
           "static_cast<double>(given[i]) * affine.factor", "static_cast<double>(given[i])"),
    Mutant("tenon.fold_batch_norm/1", "no epsilon", BATCH_NORM, "const NormForm form(graph.node_attrs(norm));",
           "NormForm form(graph.node_attrs(norm));\n  form.epsilon = 0;"),
    Mutant("tenon.fold_batch_norm/1", "place of epsilon", BATCH_NORM, "const NormForm form(graph.node_attrs(norm));",
           "NormForm form(graph.node_attrs(norm));\n  form.outside = false;"),
    Mutant("tenon.fold_batch_norm/1", "mean and shift swapped", BATCH_NORM, "shift[k], mean[k]", "mean[k], shift[k]"),
    Mutant("tenon.fold_batch_norm/1", "attributes are lost", BATCH_NORM, "graph.attrs(graph.node_attrs(conv))",
           "(static_cast<void>(conv), graph.attrs())"),
    Mutant("tenon.core.epilogue/1", "expressions before it are lost", EPILOGUE,
           "producer.epilogues[result.output].then(*expression)", "*expression"),
    Mutant("tenon.core.epilogue/1", "its own order", EPILOGUE,
           "producer.epilogues[result.output].then(*expression)", "expression->then(producer.epilogues[result.output])"),
    Mutant("tenon.core.epilogue/1", "operand order", EPILOGUE, "input == first ? 0 : next++",
           "input != first ? 0 : next++"),
    Mutant("tenon.core.epilogue/1", "operands of fewer dims", EPILOGUE,
           "if (!same_type(operand, to) ||", "if ((false && !same_type(operand, to)) ||"),
    Mutant("tenon.core.epilogue/1", "sign of constants", EPILOGUE, "instr.value = *value", "instr.value = -*value"),
    Mutant("tenon.core.epilogue/1", "producer is an output", EPILOGUE, "!graph.is_output(input) && ", ""),
    Mutant("tenon.core.epilogue/1", "producer has other users", EPILOGUE, " && graph.users(input).size() == 1", ""),
    Mutant("tenon.core.epilogue/1", "dims may change", EPILOGUE,
           "a.dtype == b.dtype && same_dims(a.dims, b.dims)", "a.dtype == b.dtype"),
    Mutant("tenon.core.join_siblings/1", "attributes are not looked at", SIBLINGS, "node.attrs.text(), output.dtype",
           "0, output.dtype"),
    Mutant("tenon.core.join_siblings/1", "activations are not looked at", SIBLINGS, 'fmt::format(" {};", epilogue.text())',
           'epilogue.empty() ? "-" : "+"'),
    Mutant("tenon.core.join_siblings/1", "inputs are not looked at", SIBLINGS, 'key += fmt::format(" {}", node.inputs[i]);',
           'key += " x";'),
    Mutant("tenon.core.join_siblings/1", "constants in another order", SIBLINGS,
           "for (const NodeId id : group) parts.push_back(",
           "for (const NodeId id : std::vector<NodeId>(group.rbegin(), group.rend())) parts.push_back("),
    Mutant("tenon.core.join_siblings/1", "groups are not looked at", "plugins/conv2d/conv2d.cc",
           'inferred.attrs().i64("groups") != 1', 'inferred.attrs().i64("groups") < 1'),
    Mutant("tenon.core.join_siblings/1", "what overlaps in memory is not looked at", PLACEMENT,
           "if (std::max(moved.begin, into.range.begin) < at || std::min(moved.end, into.range.end) > end) return false;",
           "if (end < at) return false;"),
    Mutant("tenon.core.merge_duplicates/1", "attributes are not looked at", DUPLICATES, "node.attrs.text()", "0"),
    Mutant("tenon.core.merge_duplicates/1", "inputs are not looked at", DUPLICATES, 'fmt::format(" {}", input)', "input > 0"),
    Mutant("tenon.core.pointwise/1", "inner values that are outputs", CHAINS, " || graph_.is_output(between)", ""),
    Mutant("tenon.core.pointwise/1", "readers elsewhere", CHAINS,
           "if (!std::includes(chain->members.begin(), chain->members.end(), readers.begin(), readers.end())) continue;",
           "if (readers.empty()) continue;"),
    Mutant("tenon.core.pointwise/1", "operands of the first chain", CHAINS,
           "chain.operands[instr.operand]);\n        return steps.add(instr);",
           "chain.operands[0]);\n        return steps.add(instr);"),
    Mutant("tenon.fold_bias/1", "sign of the bias", CONV, "factor[at] + offset[at]", "factor[at] - offset[at]"),
    Mutant("tenon.fold_bias/1", "own bias is lost", CONV, "(bias == nullptr ? 0 : bias[k])", "(bias == nullptr ? 0 : 0)"),
    Mutant("tenon.fold_bias/1", "constants along other axes", CONV,
           "axis < 0 || dims[axis] != channels || dims.elements() != channels",
           "(axis < 0 && false) || dims.elements() != channels"),
    Mutant("tenon.fold_scale/1", "weights without the factor", CONV, "given[i] * factor[at]", "given[i]"),
    Mutant("tenon.fold_scale/1", "bias without the factor", CONV, "bias[k]) * factor[at]", "bias[k])"),
    Mutant("tenon.fold_scale/1", "first factor for all", CONV, "return {data, data + channels};",
           "return std::vector<float>(static_cast<size_t>(channels), data[0]);"),
    Mutant("tenon.fuse_matmul_bias/1", "the bias is lost", DENSE, "w, b});", "w, (static_cast<void>(b), TN_NO_ID)});"),
    Mutant("tenon.fuse_matmul_bias/1", "weights as they are stored", DENSE, '.i64("transpose_b") == 0', '.i64("transpose_b") == 2'),
    Mutant("tenon.fuse_matmul_bias/1", "x as it is stored", DENSE, '.i64("transpose_a") != 0', '.i64("transpose_a") == 2'),
    Mutant("tenon.fuse_matmul_bias/1", "a number for each row", DENSE, " || dims[dims.rank - 1] != columns", ""),
    Mutant("tenon.fuse_matmul_bias/1", "all axes but the first in one", DENSE, 'rank != 2) attrs.i64("axis", -1)',
           'rank > 8) attrs.i64("axis", -1)'),
    Mutant("tenon.fuse_attention/1", "keys of another batch", ATTENTION, "q[axis] != k[axis] || ", ""),
    Mutant("tenon.fuse_attention/1", "softmax along any axis", ATTENTION,
           'graph.node_attrs(softmax).i64("axis"), rank) != rank - 1', 'graph.node_attrs(softmax).i64("axis"), rank) < 0'),
    Mutant("tenon.fuse_attention/1", "ranks below 4", ATTENTION, "with_rank(graph, found.q, 4)", "found.q"),
    Mutant("tenon.fuse_attention_masked/1", "masks of one key", ATTENTION,
           "mask[mask.rank - 1] != scores[rank - 1]", "mask.rank > rank"),
    Mutant("tenon.fuse_attention_masked/1", "the mask is lost", ATTENTION,
           "if (found.mask != TN_NO_ID) inputs.push_back(found.mask);", ""),
    Mutant("tenon.fuse_attention_scaled/1", "divisors are lost", ATTENTION, "*scale / number", "*scale"),
    Mutant("tenon.fuse_attention_scaled/1", "factors of q are lost", ATTENTION,
           'found.q = unscaled(graph, match.value("q"), &found.scale);',
           'double lost = 1;\n  found.q = unscaled(graph, match.value("q"), &lost);'),
    Mutant("tenon.fuse_attention_scaled/1", "values may be transposed", ATTENTION, '|| of_root.flag("transpose_b")', ""),
    Mutant("tenon.fuse_attention_scaled_masked/1", "keys stay as they are stored", ATTENTION,
           "if (!found.k.perm.empty())", "if (found.k.perm.size() > 8)"),
    Mutant("tenon.split_heads/1", "any transpose", ATTENTION_LAYOUT,
           "permutation(graph.node_attrs(transpose), rank) == std::vector<int>{0, 2, 1, 3}",
           "!permutation(graph.node_attrs(transpose), rank).empty()"),
    Mutant("tenon.split_heads/1", "any reshape", ATTENTION_LAYOUT,
           "graph.value_dims(graph.input(node, 0)) == Dims{dims[0], dims[1], dims[2] * dims[3]}",
           "graph.value_dims(graph.input(node, 0)).rank == 3"),
    Mutant("tenon.split_heads/1", "heads of the keys are lost", ATTENTION_LAYOUT,
           'attrs.i64(port == kQuery ? "heads" : "key_heads"', 'attrs.i64("heads"'),
    Mutant("tenon.merge_heads/1", "heads stay apart", ATTENTION_LAYOUT, '  attrs.i64("merge_heads", 1);\n', ""),
    Mutant("tenon.merge_qkv/1", "the biases are lost", ATTENTION_LAYOUT, "if (has_bias) layer", "if (has_bias && outputs < 0) layer"),
    Mutant("tenon.merge_qkv/1", "weights as they are stored", ATTENTION_LAYOUT, "if (one.transposed) rows", "if (one.transposed && outputs < 0) rows"),
    Mutant("tenon.merge_qkv/1", "values of any size", ATTENTION_LAYOUT, "all[kKey].outputs != all[kValue].outputs || ", ""),
    Mutant("tenon.merge_qkv/1", "the mask is lost", ATTENTION_LAYOUT,
           'packed, TN_NO_ID, TN_NO_ID, match.value("mask")', "packed, TN_NO_ID, TN_NO_ID, TN_NO_ID"),
    Mutant("tenon.fuse_layer_norm/1", "any axes", NORM, "if (reduction.reduced[n]) throw", "if (reduction.reduced[n] && n < 0) throw"),
    Mutant("tenon.fuse_layer_norm/1", "means of other axes", NORM, "match.node(form.mean)) != axis", "match.node(form.mean)) < 0"),
    Mutant("tenon.fuse_layer_norm/1", "any product is a square", NORM,
           "graph.input(square, 0) != graph.input(square, 1)", "second == TN_NO_ID"),
    Mutant("tenon.fuse_layer_norm/1", "means without their axes", NORM, 'if (!attrs.flag("keepdims")) throw',
           'if (!attrs.flag("keepdims") && x.rank == 0) throw'),
    Mutant("tenon.fuse_layer_norm/1", "epsilon is lost", NORM, '.f64("epsilon", *scalar_constant(graph, match.value("epsilon")))', ""),
    Mutant("tenon.fuse_layer_norm_inverse/1", "the bias is the scale", NORM,
           "inputs.push_back(factor(graph, match.value(name), x, axis));",
           'inputs.push_back(factor(graph, match.value("scale"), x, axis));'),
    Mutant("tenon.fuse_rms_norm/1", "any power", NORM, "scalar_constant(graph, second) != 2.0", "!scalar_constant(graph, second)"),
    Mutant("tenon.fuse_rms_norm_inverse/1", "any numerator", NORM, 'if (!is_number(graph, match.value("one"), 1))',
           'if (!is_number(graph, match.value("one"), 1) && axis < 0)'),
    Mutant("tenon.fuse_rms_norm_reciprocal/1", "the mean is taken off", NORM,
           RECIPROCAL + '"tenon.rms_norm/1"', RECIPROCAL + '"tenon.layer_norm/1"'),
    Mutant("tenon.fold_norm_scale/1", "numbers of other axes", NORM,
           "dims[dims.rank - back] != (back <= wanted.rank ? wanted[wanted.rank - back] : 1)", "wanted.rank < 0"),
    Mutant("tenon.fold_norm_scale/1", "attributes are lost", NORM, "graph.attrs(graph.node_attrs(norm)), inputs", "graph.attrs(), inputs"),
    Mutant("tenon.fold_norm_bias/1", "the scale is lost", NORM, 'match.value("scale"), c};', "TN_NO_ID, c};"),
    Mutant("tenon.fuse_softmax/1", "always the first axis", SOFTMAX, 'attrs.i64("axis", sum_axis(graph, match));',
           'attrs.i64("axis", 0 * sum_axis(graph, match));'),
    Mutant("tenon.fuse_softmax/1", "sums along several axes", SOFTMAX, "if (count != 1) throw", "if (count < 1) throw"),
    Mutant("tenon.fuse_softmax/1", "sums without their axis", SOFTMAX, 'if (!graph.node_attrs(node).flag("keepdims")) throw',
           'if (!graph.node_attrs(node).flag("keepdims") && x.rank == 0) throw'),
    Mutant("tenon.drop_softmax_shift/1", "any axis", SOFTMAX, "!= only_axis(graph, match.node(2))", "< 0 * only_axis(graph, match.node(2))"),
    Mutant("tenon.find_channel_shuffle/1", "channels of a group as groups", SHUFFLE, "return split[at];",
           "return split[at + 1];"),
    Mutant("tenon.find_channel_shuffle/1", "pixels may move", SHUFFLE, "perm[static_cast<size_t>(axis)] != swapped(axis)",
           "axis < at + 2 && perm[static_cast<size_t>(axis)] != swapped(axis)"),
    Mutant("tenon.find_channel_shuffle/1", "other axes may be split", SHUFFLE,
           "split.product(0, at) != x[0] || split[at] * split[at + 1] != x[1] || x[1] == 0",
           "split[at] * split[at + 1] == 0 || x[1] % split[at] != 0"),
    Mutant("tenon.find_channel_shuffle/1", "groups that are worked out", SHUFFLE,
           "if (!is_number(at) || !is_number(at + 1)) throw", "if (!is_number(at) && !is_number(at + 1)) throw"),
    Mutant("tenon.fold_channel_shuffle/1", "the other way round", SHUFFLE, "shuffled_from(k, dims[0], groups)",
           "shuffled_from(k, dims[0], dims[0] / groups)"),
    Mutant("tenon.fold_channel_shuffle/1", "the bias stays", SHUFFLE, 'shuffled(graph, match.value("b"), groups)',
           'match.value("b")'),
    Mutant("tenon.fold_channel_shuffle/1", "convolutions with groups", SHUFFLE, '.i64("groups") != 1', '.i64("groups") < 1'),
    Mutant("tenon.fold_activated_channel_shuffle/1", "attributes are lost", SHUFFLE,
           "graph.attrs(graph.node_attrs(activation))", "graph.attrs()"),
    Mutant("tenon.merge_transposes/1", "the other order", TRANSPOSE, "result.push_back(inner[static_cast<size_t>(axis)])",
           "result.push_back(outer[static_cast<size_t>(inner[static_cast<size_t>(axis)])])"),
    Mutant("tenon.drop_transpose/1", "any transpose of equal dims", TRANSPOSE,
           "if (!is_identity(permutation_of(graph, match.node(0)))) throw",
           "if (permutation_of(graph, match.node(0)).size() > 2) throw"),
    Mutant("tenon.undo_transposes_around/1", "any two of equal dims", TRANSPOSE,
           "if (!is_identity(composed(permutation_of(graph, match.node(inner)), permutation_of(graph, match.node(0)))))",
           "if (composed(permutation_of(graph, match.node(inner)), permutation_of(graph, match.node(0))).empty())"),
    Mutant("tenon.undo_transposes_around/1", "attributes are lost", TRANSPOSE,
           "graph.attrs(graph.node_attrs(node)), inputs);", "graph.attrs(), inputs);"),
    Mutant("tenon.undo_transposes_around_clip/1", "bounds swapped", TRANSPOSE,
           'match.value("low"), match.value("high")', 'match.value("high"), match.value("low")'),
    Mutant("tenon.undo_transposes_around_number/1", "any constant", TRANSPOSE, "c.elements() != 1 || ", "c.elements() < 1 || "),
    Mutant("tenon.undo_transposes_around_two/1", "operands swapped", TRANSPOSE,
           'again(graph, match.node(1), {match.value("x"), match.value("y")})',
           'again(graph, match.node(1), {match.value("y"), match.value("x")})'),
    Mutant("tenon.undo_transposes_around_two/1", "second transpose is not looked at", TRANSPOSE,
           "  check_undone(graph, match, 3);\n", ""),
    Mutant("tenon.fold_transpose_a/1", "what is transposed stays so", TRANSPOSE,
           "graph.node_attrs(matmul).flag(attribute) ? 0 : 1", "1"),
    Mutant("tenon.fold_transpose_a/1", "batches may move", TRANSPOSE, "std::swap(perm[rank - 1], perm[rank - 2]);\n",
           "perm[rank - 1] = static_cast<int>(rank) - 1;\n  perm[rank - 2] = static_cast<int>(rank) - 2;\n"
           "  if (rank > 2) perm[0] = 0;\n"),
    Mutant("tenon.fold_transpose_b/1", "the first one", TRANSPOSE, "tenon.transpose/1($b)*)\", \"transpose_b\"",
           "tenon.transpose/1($b)*)\", \"transpose_a\""),
    Mutant("tenon.merge_reshapes/1", "the last shape as it is", RESHAPE,
           "dim.kind == NewDim::Kind::kCopy ? inner.at(static_cast<size_t>(dim.value)) : dim",
           "dim.kind == NewDim::Kind::kCopy ? (inner.empty() ? dim : outer.at(static_cast<size_t>(dim.value))) : dim"),
    Mutant("tenon.merge_reshapes/1", "copies of axes in the same place", RESHAPE,
           "copies.push_back(dim.kind == NewDim::Kind::kCopy ? dim.value : -1)",
           "copies.push_back(dim.kind == NewDim::Kind::kCopy ? static_cast<int64_t>(copies.size()) : -1)"),
    Mutant("tenon.drop_reshape/1", "a batch that is a number", RESHAPE, "bool same = keeps_batch(form);",
           "bool same = true;"),
    Mutant("tenon.drop_reshape/1", "copies of any axis", RESHAPE,
           "form[axis].kind != NewDim::Kind::kCopy || form[axis].copies(static_cast<int64_t>(axis))",
           "form[axis].kind != NewDim::Kind::kCopy || form[axis].value >= 0"),
    Mutant("tenon.fold_pad_into_conv2d/1", "any value", PAD, "if (!(found == value)) throw", "if (!(found == value) && found > 9) throw"),
    Mutant("tenon.fold_pad_into_conv2d/1", "any mode", PAD, '.str("mode") != "constant"', '.str("mode").empty()'),
    Mutant("tenon.fold_pad_into_conv2d/1", "width before height", PAD,
           "return {all[2].begin, all[3].begin, all[2].end, all[3].end};",
           "return {all[3].begin, all[2].begin, all[3].end, all[2].end};"),
    Mutant("tenon.fold_pad_into_conv2d/1", "ends before beginnings", PAD,
           "return {all[2].begin, all[3].begin, all[2].end, all[3].end};",
           "return {all[2].end, all[3].end, all[2].begin, all[3].begin};"),
    Mutant("tenon.fold_pad_into_conv2d/1", "its own pads are lost", PAD, "+= own_pads(graph, match)[n]", "+= 0 * own_pads(graph, match)[n]"),
    Mutant("tenon.fold_pad_into_max_pool/1", "zeros", PAD, "kLowest = -std::numeric_limits<double>::infinity()",
           "kLowest = std::numeric_limits<double>::denorm_min() * 0"),
    Mutant("tenon.fold_pad_into_avg_pool/1", "the pads do not count", PAD, "rewrite(graph, match, 0, true, {})",
           "rewrite(graph, match, 0, false, {})"),
    Mutant("tenon.fold_pad_into_avg_pool/1", "its own pads count", PAD, "if (pad != 0) throw", "if (pad < 0) throw"),
    Mutant("tenon.drop_dequantize_quantize/1", "any scale", QUANTIZE, "scales == other.scales && ", ""),
    Mutant("tenon.drop_dequantize_quantize/1", "any zero point", QUANTIZE, " && zeros == other.zeros", ""),
    Mutant("tenon.drop_dequantize_quantize/1", "any axis", QUANTIZE, "axis == other.axis && ", ""),
    Mutant("tenon.drop_dequantize_quantize/1", "infinite products", QUANTIZE, "FLT_MAX / 131072", "FLT_MAX"),
    Mutant("tenon.drop_second_rounding/1", "windows outside of the image", QUANTIZE,
           " || pads[n] >= kernel[n] || pads[n + 2] >= kernel[n]", " || pads[n] >= kernel[n]"),
    Mutant("tenon.drop_second_rounding/1", "dilated windows", QUANTIZE, "dilations[n] != 1 || ", "dilations[n] < 1 || "),
    Mutant("tenon.drop_second_rounding/1", "the first part", QUANTIZE,
           "for (int n = 0; n < graph.num_inputs(node); ++n)", "for (int n = 0; n < 1; ++n)"),
    Mutant("tenon.drop_second_rounding/1", "any op", QUANTIZE, "return chooses && is_rounded", "return (chooses || budget) && is_rounded"),
    Mutant("tenon.fuse_quantize_dequantize/1", "no zero point", QUANTIZE,
           "high = range.high - static_cast<int>(scheme.zeros[0])", "high = range.high"),
    Mutant("tenon.fuse_quantize_dequantize/1", "the reciprocal scale", QUANTIZE, 
           '"t1=add(round_even(div(x0," + scale + ")),0)', '"t1=add(round_even(mul(x0,div(1," + scale + "))),0)'),
    Mutant("tenon.fuse_quantize_dequantize/1", "what is no number stays so", QUANTIZE, 
           '"select(less(" + least + ",t1),t1," +', '"max(max(" + least + ",t1)," +'),
    Mutant("tenon.fuse_quantize_dequantize/1", "the dequantize's numbers are not looked at", QUANTIZE,
           "if (!undoes(graph, match.node(1), match.node(0))) throw", "if (scheme_of(graph, match.node(1)).scales.empty()) throw"),
    Mutant("tenon.quantize_before_moving/1", "scales of an axis", QUANTIZE,
           "!scheme_of(graph, quantize).one_for_all()", "scheme_of(graph, quantize).scales.empty()"),
    Mutant("tenon.quantize_before_moving/1", "more is quantized", QUANTIZE,
           "graph.value_dims(x).elements() > graph.value_dims(graph.output(quantize)).elements() &&",
           "graph.value_dims(x).elements() < 0 &&"),
    Mutant("tenon.quantize_before_moving/1", "any dequantize", QUANTIZE,
           "return undoes(graph, quantize, node);\n    if (!only_moves(op))",
           "return undoes(graph, quantize, node) || node != TN_NO_ID;\n    if (!only_moves(op))"),
    Mutant("tenon.quantize_before_moving/1", "attributes are lost", QUANTIZE,
           "graph.attrs(graph.node_attrs(moving))", "graph.attrs()"),
    Mutant("tenon.quantize_before_moving/1", "inputs are lost", QUANTIZE, "graph.num_inputs(match.node(1)); ++n)",
           "graph.num_inputs(match.node(1)) - 1; ++n)"),
    Mutant("tenon.quantize_before_pad/1", "zeros stay zeros", QUANTIZE, 'filling == TN_NO_ID ? match.value("zero")',
           "filling == TN_NO_ID ? filling"),
    Mutant("tenon.quantize_before_pad/1", "axes are lost", QUANTIZE, 'filling, match.value("axes")', "filling, TN_NO_ID"),
    Mutant("tenon.quantize_before_concat/1", "any parts", QUANTIZE, "part != TN_NO_ID && !meets", "part != TN_NO_ID && n < 0 && !meets"),
    Mutant("tenon.quantize_before_concat/1", "the last part first", QUANTIZE,
           "inputs.push_back(quantized(graph, match, part))", "inputs.insert(inputs.begin(), quantized(graph, match, part))"),
    Mutant("tenon.drop_relu_before_quantize/1", "any zero point", QUANTIZE, "zero != quantized_range(scheme.dtype).low",
           "zero < quantized_range(scheme.dtype).low"),
    Mutant("tenon.drop_relu_after_dequantize/1", "the first channel's zero point", QUANTIZE,
           "for (const int64_t zero : scheme.zeros) {", "for (const int64_t zero : {scheme.zeros[0]}) {"),
    Mutant("reshapes", "axis 0 as a batch of any size", RESHAPE_FORM,
           "return std::all_of(form.begin(), form.end(), is_number) || form[0].copies(0) || form[0].is_rest();",
           "return !form.empty() || std::all_of(form.begin(), form.end(), is_number);"),
    Mutant("tenon.core.fold_constants/1", "outputs too", FOLDING, "!graph->is_output(output) && ", ""),
    Mutant("tenon.core.fold_constants/1", "what varies, too", FOLDING, " && !varying[output];", ";"),
    Mutant("tenon.core.fold_constants/1", "first input in every place", FOLDING,
           "input == kNoId ? nullptr : graph.value(input).constant",
           "input == kNoId ? nullptr : graph.value(node.inputs[0]).constant"),
    Mutant("patterns", "inner values with other users", PATTERN, "return users == 1;", "return users >= 1;"),
    Mutant("patterns", "inner values that are outputs", PATTERN, "if (graph_.is_output(output)) return false;", ""),
]


class Copy:
    """The tree that is broken and mended."""

    def __init__(self, source, work):
        self.source, self.work = source, work
        self.build = work / "build" / "no-cuda"
        self.environment = dict(os.environ, TENON_PLUGIN_PATH=str(self.build / "lib/tenon/plugins"))
        if shutil.which("ccache"):  # with paths relative to the tree it finds what was compiled elsewhere
            self.environment |= {
                "CCACHE_BASEDIR": str(work),
                "CMAKE_C_COMPILER_LAUNCHER": "ccache",
                "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
            }

    def synchronise(self):
        listed = subprocess.run(
            ["git", "-C", self.source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True,
        ).stdout
        names = {name for name in listed.split("\0") if name and (self.source / name).is_file()}
        self.work.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.work.rglob("*"), reverse=True):
            name = str(path.relative_to(self.work))
            if not name.startswith("build/") and name not in names and path.is_file():
                path.unlink()
        for name in names:
            wanted, path = (self.source / name).read_bytes(), self.work / name
            if path.is_file() and path.read_bytes() == wanted:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted)
            shutil.copymode(self.source / name, path)

    def configure(self):
        self._run(["cmake", "--preset", "no-cuda"])

    def make(self):
        self._run(["cmake", "--build", self.build, "--target", "fusion_rules_test", "fusion_random_graphs_test"])

    def _run(self, command):
        done = subprocess.run(command, cwd=self.work, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")

    def test(self, program, *arguments, **environment):
        """Status and output of a test; status None where it takes too long."""
        try:
            done = subprocess.run(
                [self.build / "tests" / program, *arguments], env=self.environment | environment, timeout=900,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
            )
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return None, ""

    def fails(self, seeds, **environment):
        """The name of the test that fails, or ""."""
        if self.test("fusion_rules_test", **environment)[0] != 0:
            return "rules"
        if seeds and self.test("fusion_random_graphs_test", "1", str(seeds), **environment)[0] != 0:
            return "random graphs"
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--only", default="", help="rules and mutants whose line matches this regular expression")
    parser.add_argument("--seeds", type=int, default=300)
    options = parser.parse_args()
    copy = Copy(options.source.resolve(), options.work.resolve())
    if copy.source == copy.work or copy.work in copy.source.parents:
        sys.exit(f"{copy.work} holds the tree itself; name a folder that may be overwritten")
    for mutant in MUTANTS:
        found = (copy.source / mutant.file).read_text(encoding="utf-8").count(mutant.text)
        if found != 1:
            sys.exit(f"{mutant.rule}, {mutant.what}: expected its text once in {mutant.file}, found {found} times; "
                     f"the text is\n{mutant.text}")
    copy.synchronise()
    copy.configure()
    copy.make()
    status, output = copy.test("fusion_random_graphs_test", "1", str(max(options.seeds, 1)))
    if status == 0:
        rules_status, rules_output = copy.test("fusion_rules_test")
    if status != 0 or rules_status != 0:
        sys.exit(f"the tests fail without any change:\n{(output if status != 0 else rules_output)[-4000:]}")
    rules = re.findall(r"^  (\S+) +fired ", output, re.MULTILINE)

    survivors = [f"{rule} has no mutant" for rule in rules if rule not in {m.rule for m in MUTANTS}]

    def line(rule, what, check):
        if not re.search(options.only, f"{rule} {what}"):
            return
        start = time.monotonic()
        by = check()
        print(f"{rule:32} {what:34} {'found by ' + by if by else 'SURVIVED':24} {time.monotonic() - start:5.1f} s",
              flush=True)
        if not by:
            survivors.append(f"{rule}, {what}: every test passes")

    def broken(mutant):
        path = copy.work / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(mutant.text, mutant.replacement), encoding="utf-8")
        try:
            copy.make()
            return copy.fails(options.seeds)
        finally:
            path.write_text(original, encoding="utf-8")

    for rule in rules:
        line(rule, "switched off", lambda: copy.fails(0, TENON_FUSION_DISABLED=rule))
    for mutant in MUTANTS:
        line(mutant.rule, mutant.what, lambda: broken(mutant))
    copy.make()
    if copy.fails(0):
        sys.exit("the tests fail after the last change was taken back")
    if survivors:
        sys.exit("\n".join(survivors))


if __name__ == "__main__":
    main()
