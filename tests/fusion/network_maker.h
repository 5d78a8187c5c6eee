// A network that is made step by step, for tests: ops by name, constants by value, dims at hand. Mistakes throw.
#ifndef TENON_TESTS_FUSION_NETWORK_MAKER_H
#define TENON_TESTS_FUSION_NETWORK_MAKER_H

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::fusion {

using Dims = std::vector<std::int64_t>;

inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <class T>
T must(Result<T> result) {
  must(result.status());
  return std::move(*result);
}

inline std::int64_t elements(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

struct Value {
  TensorId id = TN_NO_TENSOR;
  Dims dims;
  int rank() const { return static_cast<int>(dims.size()); }
};

class NetworkMaker {
 public:
  /// Inputs and constants of floats are f32, or the same numbers as f64.
  explicit NetworkMaker(const Library& library, std::int32_t dtype = TN_F32)
      : network_(must(Network::create(library))), dtype_(dtype) {}

  Value input(const Dims& dims) {
    return {must(network_.add_input("x" + std::to_string(inputs_++), dims, dtype_)), dims};
  }
  Value constant(const Dims& dims, const std::vector<float>& values) {
    if (dtype_ == TN_F64) return raw_constant(dims, TN_F64, std::vector<double>(values.begin(), values.end()));
    return raw_constant(dims, TN_F32, values);
  }
  Value number(double value, const Dims& dims = {}) {
    return constant(dims, std::vector<float>(static_cast<std::size_t>(elements(dims)), static_cast<float>(value)));
  }
  Value integers(const std::vector<std::int64_t>& values) {
    return raw_constant({static_cast<std::int64_t>(values.size())}, TN_I64, values);
  }
  /// T is the C++ type of the dtype.
  template <class T>
  Value raw_constant(const Dims& dims, std::int32_t dtype, const std::vector<T>& values) {
    const TnDims raw = detail::dims(dims);
    Value result{TN_NO_TENSOR, dims};
    must(detail::check(tn_network_add_constant(network_.get(), next_name("c").c_str(), dtype, &raw, values.data(),
                                               values.size() * sizeof(T), &result.id)));
    return result;
  }
  /// A layer of op tenon.NAME/1 with one output.
  Value op(const std::string& name, const std::vector<Value>& inputs, const nlohmann::json& attrs = nullptr) {
    std::vector<TensorId> ids;
    for (const Value& value : inputs) {
      ids.push_back(value.id);
      read_.insert(value.id);
    }
    const std::string text = attrs.is_null() ? "" : attrs.dump();
    Value result{must(network_.add_layer("tenon." + name + "/1", next_name(name), ids, text)), {}};
    TnDims raw{};
    must(detail::check(tn_network_describe_tensor(network_.get(), result.id, nullptr, nullptr, &raw)));
    result.dims = detail::list(raw);
    return result;
  }
  /// Makes it an output called y0, y1, ...; a value is one only once.
  void output(const Value& value) {
    if (!outputs_.insert(value.id).second) return;
    must(network_.rename(value.id, "y" + std::to_string(outputs_.size() - 1)));
    must(network_.mark_output(value.id));
  }
  bool is_read(const Value& value) const { return read_.count(value.id) != 0; }
  /// Of constants and layers so far.
  std::uint64_t num_names() const { return static_cast<std::uint64_t>(names_); }
  std::size_t num_outputs() const { return outputs_.size(); }
  Network& network() { return network_; }
  /// Of inputs and constants of floats.
  std::int32_t dtype() const { return dtype_; }

 private:
  std::string next_name(const std::string& base) { return base + "_" + std::to_string(names_++); }

  Network network_;
  std::int32_t dtype_;
  std::set<TensorId> read_, outputs_;
  int inputs_ = 0, names_ = 0;
};

/// An activation spelled out as exporters do: "swish", "mish", "hard_swish", "hard_swish_gate", "gelu",
/// "gelu_half_first", "gelu_gate", "gelu_tanh". `off` is added to one of its constants; `gate_of` stands in the gate in
/// place of x.
Value spell(NetworkMaker& make, const std::string& form, const Value& x, double off, const Value& gate_of);
inline Value spell(NetworkMaker& make, const std::string& form, const Value& x) { return spell(make, form, x, 0, x); }
/// All names that spell knows.
const std::vector<std::string>& spelled_forms();

}  // namespace tenon::fusion

#endif  // TENON_TESTS_FUSION_NETWORK_MAKER_H
