// Network: built layer by layer or read from a model file.
// Thread rule: see tenon.hpp.
#ifndef TENON_NETWORK_HPP
#define TENON_NETWORK_HPP

#include <string>
#include <utility>
#include <vector>

#include <tenon/library.hpp>

namespace tenon {

using TensorId = TnTensorId;

/// A network built layer by layer or read from a file. Building never changes it.
class Network {
 public:
  static Result<Network> create(const Library& library) {
    TnNetwork* handle = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_create(library.get(), &handle)));
    return Network(library, handle);
  }
  /// See tn_network_import. Empty strings stand for NULL.
  Status import(const std::string& path, const std::string& importer = "", const std::string& options_json = "",
                const std::string& files_json = "") {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    return detail::check(tn_network_import(get(), path.c_str(), text(importer), text(options_json), text(files_json)));
  }
  Result<TensorId> add_input(const std::string& name, const std::vector<std::int64_t>& dims,
                             std::int32_t dtype = TN_F32) {
    const TnDims raw = detail::dims(dims);
    TensorId id = TN_NO_TENSOR;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_add_input(get(), name.c_str(), dtype, &raw, &id)));
    return id;
  }
  Result<TensorId> add_constant(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<float>& values) {
    const TnDims raw = detail::dims(dims);
    TensorId id = TN_NO_TENSOR;
    TENON_RETURN_IF_ERROR(detail::check(
        tn_network_add_constant(get(), name.c_str(), TN_F32, &raw, values.data(), values.size() * sizeof(float), &id)));
    return id;
  }
  /// A layer of any registered op with several outputs.
  Result<std::vector<TensorId>> add_layers(const std::string& op_id, const std::string& name,
                                           const std::vector<TensorId>& inputs, std::uint32_t num_outputs,
                                           const std::string& attrs_json = "") {
    std::vector<TensorId> outputs(num_outputs, TN_NO_TENSOR);
    TENON_RETURN_IF_ERROR(detail::check(
        tn_network_add_layer(get(), op_id.c_str(), name.c_str(), attrs_json.empty() ? nullptr : attrs_json.c_str(),
                             inputs.data(), static_cast<std::uint32_t>(inputs.size()), outputs.data(), num_outputs)));
    return outputs;
  }
  /// A layer with one output.
  Result<TensorId> add_layer(const std::string& op_id, const std::string& name, const std::vector<TensorId>& inputs,
                             const std::string& attrs_json = "") {
    TENON_ASSIGN(const std::vector<TensorId> outputs, add_layers(op_id, name, inputs, 1, attrs_json));
    return outputs[0];
  }
  Status mark_output(TensorId tensor) { return detail::check(tn_network_mark_output(get(), tensor)); }
  Status mark_output(const std::string& name) {
    return detail::check(tn_network_mark_output_by_name(get(), name.c_str()));
  }
  Status set_input_dims(const std::string& name, const std::vector<std::int64_t>& dims) {
    const TnDims raw = detail::dims(dims);
    return detail::check(tn_network_set_input_dims(get(), name.c_str(), &raw));
  }
  /// Lets an input have any dims from min to max at run time; kernels are tuned for opt.
  Status set_profile(const std::string& name, const std::vector<std::int64_t>& min,
                     const std::vector<std::int64_t>& opt, const std::vector<std::int64_t>& max) {
    const TnDims raw[] = {detail::dims(min), detail::dims(opt), detail::dims(max)};
    return detail::check(tn_network_set_profile(get(), name.c_str(), &raw[0], &raw[1], &raw[2]));
  }
  Status rename(TensorId tensor, const std::string& name) {
    return detail::check(tn_network_rename(get(), tensor, name.c_str()));
  }
  Status set_metadata(const std::string& key, const std::string& text) {
    return detail::check(tn_network_set_metadata(get(), key.c_str(), text.c_str()));
  }
  Result<std::string> metadata(const std::string& key) const {
    const char* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_get_metadata(get(), key.c_str(), &text)));
    return std::string(text);
  }
  Result<std::string> dump() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_dump(get(), &text)));
    return detail::take(text);
  }
  Result<std::string> describe() const {
    TnText* text = nullptr;
    TENON_RETURN_IF_ERROR(detail::check(tn_network_describe(get(), &text)));
    return detail::take(text);
  }
  TnNetwork* get() const { return handle_.get(); }
  const Library& library() const { return library_; }

 private:
  Network(Library library, TnNetwork* handle) : library_(std::move(library)), handle_(handle) {}
  Library library_;
  detail::Handle<TnNetwork, tn_network_release> handle_;
};

}  // namespace tenon

#endif  // TENON_NETWORK_HPP
