// NetworkWriter: turns planned layers into nodes of the graph, taking their numbers from the weights in order.
//
// Thread rule: used by the thread that imports.
#ifndef TENON_IMPORTERS_DARKNET_NETWORK_H_
#define TENON_IMPORTERS_DARKNET_NETWORK_H_

#include <map>
#include <set>
#include <string>
#include <tenon/sdk/importer.hpp>
#include <vector>

#include "importers/darknet/layers.h"
#include "importers/darknet/metadata.h"
#include "importers/darknet/weights.h"

namespace tenon::darknet {

// How batch-norm divides: by sqrt(variance + epsilon), or by sqrt(variance) + epsilon.
struct Epsilon {
  double value = 1e-5;
  bool inside = true;
};

class NetworkWriter {
 public:
  // Adds the input `data`, [1, channels, height, width]. The references outlive the writer.
  NetworkWriter(GraphView& graph, Weights& weights, const Epsilon& epsilon, const Shape& input);

  // Adds the nodes of the next section. `feeds_shortcut`: the section behind it is a [shortcut].
  void add(const Section& section, const Layer& layer, bool feeds_shortcut);
  // Takes the next section's value from somebody else's importer.
  void add_foreign(TnValueId value);
  // The value of a layer, which counts as read; -1: the network's input.
  TnValueId read(int layer);
  // Outputs of the layers so far.
  const std::vector<Shape>& shapes() const { return shapes_; }
  // Marks the outputs and sets the metadata.
  void finish(const Section& last);

 private:
  TnValueId node(const std::string& op, const std::string& name, const NewAttrs& attrs,
                 const std::vector<TnValueId>& inputs);
  TnValueId node(const std::string& op, const std::string& name, const std::vector<TnValueId>& inputs);
  TnValueId scalar(const std::string& name, float value);
  TnValueId vector(Part part, int64_t size);
  TnValueId weights(const Dims& dims, int64_t fan_in, const Activation& activation);
  TnValueId batch_norm(const std::string& name, TnValueId x, const std::vector<TnValueId>& parts);
  TnValueId activate(TnValueId x, const Activation& activation);
  TnValueId channels(const std::string& name, TnValueId x, int64_t first, int64_t last);

  TnValueId write(const Convolution& conv);
  TnValueId write(const Connected& dense);
  TnValueId write(const MaxPool& pool);
  TnValueId write(const AveragePool& pool);
  TnValueId write(const Crop& crop);
  TnValueId write(const Softmax& softmax);
  TnValueId write(const Route& route);
  TnValueId write(const Shortcut& shortcut);
  TnValueId write(const Upsample& upsample);
  TnValueId write(const Reorg& reorg);
  TnValueId write(const Head& head);
  TnValueId write(const Detection& detection);
  TnValueId write(const Alias& alias);
  // The input of the present section, which counts as read.
  TnValueId in() { return read(section_->index - 1); }
  void finish_section(TnValueId value, const Shape& shape);

  GraphView& graph_;
  Weights& weights_;
  const Epsilon epsilon_;
  const Shape input_;
  TnValueId data_;
  std::vector<TnValueId> values_;  // by layer
  std::vector<Shape> shapes_;
  std::set<TnValueId> read_;
  std::set<TnValueId> foreign_;
  std::vector<TnValueId> outputs_;  // of heads and of foreign sections, in order
  std::vector<HeadOutput> heads_;
  std::map<std::string, std::string> aliases_;
  bool classifies_ = false;  // the last section that computes something is [softmax]

  // Of the section being written.
  const Section* section_ = nullptr;
  const Layer* layer_ = nullptr;
  std::string name_;
  bool feeds_shortcut_ = false;
};

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_NETWORK_H_
