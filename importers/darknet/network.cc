#include "importers/darknet/network.h"

#include <algorithm>
#include <cmath>

namespace tenon::darknet {

NetworkWriter::NetworkWriter(GraphView& graph, Weights& weights, const Epsilon& epsilon, const Shape& input)
    : graph_(graph),
      weights_(weights),
      epsilon_(epsilon),
      input_(input),
      data_(graph.add_input("data", TN_F32, {1, input.channels, input.height, input.width})) {}

void NetworkWriter::add(const Section& section, const Layer& layer, bool feeds_shortcut) {
  section_ = &section;
  layer_ = &layer;
  name_ = text("layer", section.index);
  feeds_shortcut_ = feeds_shortcut;
  if (!std::holds_alternative<Alias>(layer.operation)) {
    classifies_ = std::holds_alternative<Softmax>(layer.operation);
  }
  finish_section(std::visit([this](const auto& operation) { return write(operation); }, layer.operation), layer.out);
}

void NetworkWriter::add_foreign(TnValueId value) {
  name_ = text("layer", values_.size());
  classifies_ = false;
  foreign_.insert(value);
  outputs_.push_back(value);
  const Dims dims = graph_.value_dims(value);
  const bool image = dims.rank == 4;
  finish_section(value, image ? Shape{dims[1], dims[2], dims[3], true} : Shape{dims[1], 1, 1, false});
}

void NetworkWriter::finish_section(TnValueId value, const Shape& shape) {
  values_.push_back(value);
  shapes_.push_back(shape);
  const std::string actual = graph_.value_name(value);
  if (actual != name_) aliases_[name_] = actual;
}

TnValueId NetworkWriter::read(int layer) {
  const TnValueId value = layer < 0 ? data_ : values_[static_cast<size_t>(layer)];
  read_.insert(value);
  return value;
}

void NetworkWriter::finish(const Section& last) {
  std::vector<TnValueId> outputs;
  for (const TnValueId value : outputs_) {
    if (foreign_.count(value) == 0 || read_.count(value) == 0) outputs.push_back(value);
  }
  if (outputs.empty()) {
    if (values_.back() == data_) last.fail("no section up to this last one computes anything");
    outputs.push_back(values_.back());
    if (classifies_) {
      graph_.set_metadata("classification", classification_json(graph_.value_name(values_.back()), input_));
    }
  }
  for (const TnValueId value : outputs) graph_.add_output(value);
  if (!heads_.empty()) graph_.set_metadata("detection", detection_json(heads_, input_));
  graph_.set_metadata("darknet.aliases", aliases_json(aliases_));
}

TnValueId NetworkWriter::node(const std::string& op, const std::string& name, const NewAttrs& attrs,
                              const std::vector<TnValueId>& inputs) {
  return graph_.add_node(op, name, attrs, inputs);
}

TnValueId NetworkWriter::node(const std::string& op, const std::string& name, const std::vector<TnValueId>& inputs) {
  return graph_.add_node(op, name, graph_.attrs(), inputs);
}

TnValueId NetworkWriter::scalar(const std::string& name, float value) {
  return graph_.add_const(name, Dims{1}, &value);
}

TnValueId NetworkWriter::vector(Part part, int64_t size) {
  constexpr const char* kNames[] = {".bias", ".scale", ".mean", ".variance"};
  const float* data = weights_.take(part, static_cast<uint64_t>(size), 0, *section_);
  return graph_.add_const(name_ + kNames[static_cast<int>(part)], Dims{size}, data);
}

TnValueId NetworkWriter::weights(const Dims& dims, int64_t fan_in, const Activation& activation) {
  // For made-up weights: rectifiers halve the mean square, so it is doubled before them (He et al. 2015); the branch of
  // a residual block adds little, so that the sum does not grow from block to block.
  const double gain = activation.op.find("relu") != std::string::npos ? 2.0 : 1.0;
  const double spread = std::sqrt(gain / static_cast<double>(fan_in)) * (feeds_shortcut_ ? 0.3 : 1.0);
  const float* data = weights_.take(Part::kWeights, static_cast<uint64_t>(dims.elements()), spread, *section_);
  return graph_.add_const(name_ + ".weights", dims, data);
}

TnValueId NetworkWriter::batch_norm(const std::string& name, TnValueId x, const std::vector<TnValueId>& parts) {
  NewAttrs attrs = graph_.attrs();
  attrs.f64("epsilon", epsilon_.value).str("epsilon_place", epsilon_.inside ? "inside" : "outside");
  return node("tenon.batch_norm/1", name, attrs, {x, parts[0], parts[1], parts[2], parts[3]});
}

TnValueId NetworkWriter::activate(TnValueId x, const Activation& activation) {
  NewAttrs attrs = graph_.attrs();
  if (activation.alpha != 0) attrs.f64("alpha", activation.alpha);
  return node(activation.op, name_, attrs, {x});
}

TnValueId NetworkWriter::channels(const std::string& name, TnValueId x, int64_t first, int64_t last) {
  NewAttrs attrs = graph_.attrs();
  attrs.i64s("starts", {first}).i64s("ends", {last}).i64s("axes", {1});
  return node("tenon.slice/1", name, attrs, {x});
}

TnValueId NetworkWriter::write(const Convolution& conv) {
  const TnValueId x = in();
  const TnValueId bias = vector(Part::kBias, conv.filters);
  std::vector<TnValueId> norm;
  if (conv.batch_normalize) {
    const TnValueId scale = vector(Part::kScale, conv.filters);
    const TnValueId mean = vector(Part::kMean, conv.filters);
    norm = {scale, bias, mean, vector(Part::kVariance, conv.filters)};
  }
  const int64_t in_channels = layer_->in.channels / conv.groups;
  const TnValueId kernel =
      weights({conv.filters, in_channels, conv.size, conv.size}, in_channels * conv.size * conv.size, conv.activation);
  const bool activated = !conv.activation.op.empty();
  NewAttrs attrs = graph_.attrs();
  attrs.i64s("strides", {conv.stride_y, conv.stride_x})
      .i64s("pads", {conv.padding, conv.padding, conv.padding, conv.padding})
      .i64s("dilations", {conv.dilation, conv.dilation})
      .i64("groups", conv.groups);
  TnValueId y = node("tenon.conv2d/1", norm.empty() && !activated ? name_ : name_ + ".conv", attrs,
                     norm.empty() ? std::vector<TnValueId>{x, kernel, bias} : std::vector<TnValueId>{x, kernel});
  if (!norm.empty()) y = batch_norm(activated ? name_ + ".bn" : name_, y, norm);
  return activated ? activate(y, conv.activation) : y;
}

// Unlike a convolution, a connected layer stores its batch-norm behind the weights.
TnValueId NetworkWriter::write(const Connected& dense) {
  const TnValueId x = in();
  const int64_t inputs = layer_->in.elements();
  const TnValueId bias = vector(Part::kBias, dense.outputs);
  const TnValueId matrix = weights({dense.outputs, inputs}, inputs, dense.activation);
  std::vector<TnValueId> norm;
  if (dense.batch_normalize) {
    const TnValueId scale = vector(Part::kScale, dense.outputs);
    const TnValueId mean = vector(Part::kMean, dense.outputs);
    norm = {scale, bias, mean, vector(Part::kVariance, dense.outputs)};
  }
  const bool activated = !dense.activation.op.empty();
  TnValueId y = node("tenon.fully_connected/1", norm.empty() && !activated ? name_ : name_ + ".fc",
                     norm.empty() ? std::vector<TnValueId>{x, matrix, bias} : std::vector<TnValueId>{x, matrix});
  if (!norm.empty()) y = batch_norm(activated ? name_ + ".bn" : name_, y, norm);
  return activated ? activate(y, dense.activation) : y;
}

TnValueId NetworkWriter::write(const MaxPool& pool) {
  NewAttrs attrs = graph_.attrs();
  attrs.i64s("kernel", {pool.size, pool.size})
      .i64s("strides", {pool.stride_y, pool.stride_x})
      .i64s("pads", {pool.pads.begin(), pool.pads.end()});
  return node("tenon.max_pool/1", name_, attrs, {in()});
}

TnValueId NetworkWriter::write(const AveragePool&) { return node("tenon.global_avg_pool/1", name_, {in()}); }

TnValueId NetworkWriter::write(const Crop& crop) {
  NewAttrs attrs = graph_.attrs();
  attrs.i64s("starts", {crop.top, crop.left})
      .i64s("ends", {crop.top + layer_->out.height, crop.left + layer_->out.width})
      .i64s("axes", {2, 3});
  if (!crop.adjust) return node("tenon.slice/1", name_, attrs, {in()});
  const TnValueId middle = node("tenon.slice/1", name_ + ".crop", attrs, {in()});
  const TnValueId doubled = node("tenon.mul/1", name_ + ".mul", {middle, scalar(name_ + ".two", 2)});
  return node("tenon.add/1", name_, {doubled, scalar(name_ + ".minus_one", -1)});
}

TnValueId NetworkWriter::write(const Softmax& softmax) {
  const Shape& shape = layer_->in;
  const bool flat = shape.height == 1 && shape.width == 1 && softmax.groups == 1;
  TnValueId x = in();
  if (softmax.temperature != 1) {
    const TnValueId factor = scalar(name_ + ".factor", static_cast<float>(1 / softmax.temperature));
    x = node("tenon.mul/1", name_ + ".mul", {x, factor});
  }
  NewAttrs axis = graph_.attrs();
  if (flat) return node("tenon.softmax/1", name_, axis.i64("axis", 1), {x});
  NewAttrs apart = graph_.attrs(), back = graph_.attrs();
  apart.i64s("shape", {0, softmax.groups, -1});
  x = node("tenon.reshape/1", name_ + ".groups", apart, {x});
  x = node("tenon.softmax/1", name_ + ".softmax", axis.i64("axis", 2), {x});
  if (shape.image) {
    back.i64s("shape", {0, shape.channels, shape.height, shape.width});
  } else {
    back.i64s("shape", {0, shape.channels});
  }
  return node("tenon.reshape/1", name_, back, {x});
}

TnValueId NetworkWriter::write(const Route& route) {
  std::vector<TnValueId> parts;
  const bool alone = route.layers.size() == 1;
  for (size_t n = 0; n < route.layers.size(); ++n) {
    TnValueId part = read(route.layers[n]);
    if (route.groups > 1) {
      const int64_t size = shapes_[static_cast<size_t>(route.layers[n])].channels / route.groups;
      part =
          channels(alone ? name_ : text(name_, ".group", n), part, size * route.group_id, size * (route.group_id + 1));
    }
    parts.push_back(part);
  }
  if (alone) return parts[0];
  NewAttrs attrs = graph_.attrs();
  return node("tenon.concat/1", name_, attrs.i64("axis", 1), parts);
}

TnValueId NetworkWriter::write(const Shortcut& shortcut) {
  const Shape& own = layer_->in;
  const bool activated = !shortcut.activation.op.empty();
  TnValueId sum = in();
  for (size_t n = 0; n < shortcut.layers.size(); ++n) {
    const bool last = n + 1 == shortcut.layers.size() && !activated;
    const std::string name = last ? name_ : n == 0 ? name_ + ".add" : text(name_, ".add", n);
    const Shape& other = shapes_[static_cast<size_t>(shortcut.layers[n])];
    const int64_t others = other.channels;
    TnValueId from = read(shortcut.layers[n]);
    if (other.height != own.height || other.width != own.width) {
      const int64_t step = other.height / own.height;
      NewAttrs attrs = graph_.attrs();
      attrs.i64s("starts", {0, 0, 0})
          .i64s("ends", {std::min(others, own.channels), (own.height - 1) * step + 1, (own.width - 1) * step + 1})
          .i64s("axes", {1, 2, 3})
          .i64s("steps", {1, step, step});
      from = node("tenon.slice/1", text(name_, ".from", n), attrs, {from});
    } else if (others > own.channels) {
      from = channels(text(name_, ".from", n), from, 0, own.channels);
    }
    if (others >= own.channels) {
      sum = node("tenon.add/1", name, {sum, from});
    } else {
      const TnValueId both = channels(text(name_, ".both", n), sum, 0, others);
      const TnValueId rest = channels(text(name_, ".rest", n), sum, others, own.channels);
      const TnValueId added = node("tenon.add/1", text(name_, ".part", n), {both, from});
      NewAttrs attrs = graph_.attrs();
      sum = node("tenon.concat/1", name, attrs.i64("axis", 1), {added, rest});
    }
  }
  return activated ? activate(sum, shortcut.activation) : sum;
}

TnValueId NetworkWriter::write(const Upsample& upsample) {
  NewAttrs attrs = graph_.attrs();
  attrs.i64s("factors", {upsample.stride, upsample.stride}).f64("scale", upsample.scale);
  return node("tenon.upsample/1", name_, attrs, {in()});
}

TnValueId NetworkWriter::write(const Reorg& reorg) {
  NewAttrs attrs = graph_.attrs();
  return node("tenon.reorg/1", name_, attrs.i64("stride", reorg.stride), {in()});
}

TnValueId NetworkWriter::write(const Head& head) {
  NewAttrs attrs = graph_.attrs();
  attrs.i64("anchors", head.boxes).i64("classes", head.classes);
  if (head.yolo) {
    attrs.f64("scale_x_y", head.scale_x_y);
  } else {
    attrs.i64("coords", head.coords).i64("softmax", head.softmax ? 1 : 0);
  }
  const TnValueId y = node(head.yolo ? "tenon.yolo/1" : "tenon.region/1", name_, attrs, {in()});
  heads_.push_back({graph_.value_name(y), head});
  outputs_.push_back(y);
  return y;
}

TnValueId NetworkWriter::write(const Detection& detection) {
  TnValueId x = in();
  const int64_t inputs = layer_->in.elements();
  NewAttrs row = graph_.attrs();
  if (layer_->in.image) x = node("tenon.reshape/1", name_ + ".row", row.i64s("shape", {0, inputs}), {x});
  TnValueId y = TN_NO_ID;
  if (!detection.softmax) {
    y = node("tenon.linear/1", name_, {x});
  } else {
    const int64_t scores = detection.cells * detection.classes;
    NewAttrs apart = graph_.attrs(), axis = graph_.attrs(), back = graph_.attrs(), join = graph_.attrs();
    apart.i64s("shape", {0, detection.cells, detection.classes});
    TnValueId classes = node("tenon.reshape/1", name_ + ".cells", apart, {channels(name_ + ".classes", x, 0, scores)});
    classes = node("tenon.softmax/1", name_ + ".softmax", axis.i64("axis", 2), {classes});
    classes = node("tenon.reshape/1", name_ + ".scores", back.i64s("shape", {0, scores}), {classes});
    y = node("tenon.concat/1", name_, join.i64("axis", 1), {classes, channels(name_ + ".boxes", x, scores, inputs)});
  }
  outputs_.push_back(y);
  return y;
}

TnValueId NetworkWriter::write(const Alias& alias) {
  return alias.layer < 0 ? data_ : values_[static_cast<size_t>(alias.layer)];
}

}  // namespace tenon::darknet
