/// IPlugin: the class that an instance of a kernel derives from.
#ifndef TENON_SDK_PLUGIN_BASE_HPP
#define TENON_SDK_PLUGIN_BASE_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "../plugin/ext/parallel.h"
#include "site.hpp"

namespace tenon {
inline namespace sdk {

/// Memory that an instance wants, in bytes, for the site's max dims.
struct Sizes {
  uint64_t persistent = 0;
  uint64_t workspace = 0;
  uint64_t context_host = 0;
  uint64_t context_device = 0;
  uint64_t init_scratch = 0;
  uint64_t pack_key[2] = {0, 0};  ///< covers constants and layout of the persistent bytes; 0,0: never shared
};

/// What initialize gets.
class Init {
 public:
  explicit Init(const TnInit* init) : init_(init) {}
  /// Contents of a constant input on the host, row-major; they stay valid as long as the instance.
  Tensor constant(int n) const { return Tensor(init_->constants_host[n]); }
  /// The same in device memory, in the combo's format; NULL if the input is not constant.
  template <class T>
  const T* device_constant(int n) const {
    return static_cast<const T*>(init_->constants_device[n].data);
  }
  bool has_constant(int n) const {
    return n < static_cast<int>(init_->num_inputs) && init_->constants_host[n].data != nullptr;
  }
  template <class T>
  T* persistent() const {
    return static_cast<T*>(init_->persistent);
  }
  /// Persistent memory holds its contents already and is read-only: pack nothing.
  bool filled() const { return init_->persistent_filled != 0; }
  const TnInit& raw() const { return *init_; }

 private:
  const TnInit* init_;
};

/// Stream, pool and scratch of one call.
class Exec {
 public:
  explicit Exec(const TnExec* exec) : exec_(exec) {}
  int threads() const { return exec_->threads > 0 ? exec_->threads : 1; }
  /// NULL if the host lends no pool: run serially.
  const TnParallel* parallel() const { return static_cast<const TnParallel*>(exec_->parallel); }
  void* stream() const { return exec_->stream; }
  template <class T>
  T* workspace() const {
    return static_cast<T*>(exec_->workspace);
  }
  template <class T>
  T* context_host() const {
    return static_cast<T*>(exec_->context_host);
  }
  template <class T>
  T* context_device() const {
    return static_cast<T*>(exec_->context_device);
  }
  const TnExec& raw() const { return *exec_; }

 private:
  const TnExec* exec_;
};

class Writer {
 public:
  explicit Writer(TnWriter* writer) : writer_(writer) {}
  void bytes(const void* data, uint64_t size) const {
    if (writer_->write(writer_, data, size) != static_cast<int64_t>(size)) throw Failure(TN_IO, "short write");
  }
  template <class T>
  void value(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&value, sizeof value);
  }

 private:
  TnWriter* writer_;
};

class Reader {
 public:
  explicit Reader(TnReader* reader) : reader_(reader) {}
  void bytes(void* data, uint64_t size) const {
    if (reader_->read(reader_, data, size) != static_cast<int64_t>(size)) {
      throw Invalid(text("the kernel's state ends too early: expected ", size, " more bytes"));
    }
  }
  template <class T>
  T value() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    bytes(&value, sizeof value);
    return value;
  }

 private:
  TnReader* reader_;
};

/// One instance for one site, combo and tactic; immutable once initialized. Derive and override.
class IPlugin {
 public:
  virtual ~IPlugin() = default;
  /// Copies what it needs from the site. Declined for a tactic that is no longer offered. [build]
  virtual void configure(const Config&) {}
  virtual Sizes sizes() const { return {}; }
  /// Packs constants into persistent memory unless it is filled. [inst]
  virtual void initialize(const Init&) {}
  /// Dims changed (data pointers are NULL): may write launch data into context memory. [run]
  virtual void set_shapes(const Exec&, const TnTensor*, const TnTensor*) const {}
  /// Does the work (CPU) or launches it on the stream (CUDA). No allocation, lock, wait or I/O. [run]
  virtual void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const = 0;
  /// Small private state beyond site, combo, tactic and constants. [inst]
  virtual void serialize(const Writer&) const {}
  /// Reproduces configure's result from serialize's bytes. [build]
  virtual void deserialize(const Reader&, const Config& config) { configure(config); }
  /// Undoes initialize. [inst]
  virtual void terminate() noexcept {}

  static TnInst* to_c(std::unique_ptr<IPlugin> plugin) { return reinterpret_cast<TnInst*>(plugin.release()); }
  static IPlugin* from_c(TnInst* inst) { return reinterpret_cast<IPlugin*>(inst); }
  static const IPlugin* from_c(const TnInst* inst) { return reinterpret_cast<const IPlugin*>(inst); }

  /// Sets those callbacks of a kernel that act on instances.
  static void bind(TnKernel* kernel) {
    kernel->sizes = [](const TnHost* host, const TnInst* inst, TnSizes* out) {
      return guard(host, [&] {
        const Sizes sizes = from_c(inst)->sizes();
        out->persistent = sizes.persistent;
        out->workspace = sizes.workspace;
        out->context_host = sizes.context_host;
        out->context_device = sizes.context_device;
        out->init_scratch = sizes.init_scratch;
        out->pack_key[0] = sizes.pack_key[0];
        out->pack_key[1] = sizes.pack_key[1];
      });
    };
    kernel->initialize = [](const TnHost* host, TnInst* inst, const TnInit* init) {
      return guard(host, [&] { from_c(inst)->initialize(Init(init)); });
    };
    kernel->set_shapes = [](const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                            const TnTensor* outputs) {
      return guard(host, [&] { from_c(inst)->set_shapes(Exec(exec), inputs, outputs); });
    };
    kernel->enqueue = [](const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                         const TnTensor* outputs) {
      return guard(host, [&] { from_c(inst)->enqueue(Exec(exec), inputs, outputs); });
    };
    kernel->serialize = [](const TnHost* host, const TnInst* inst, TnWriter* writer) {
      return guard(host, [&] { from_c(inst)->serialize(Writer(writer)); });
    };
    kernel->terminate = [](const TnHost*, TnInst* inst) { from_c(inst)->terminate(); };
    kernel->destroy = [](const TnHost*, TnInst* inst) { delete from_c(inst); };
  }
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_PLUGIN_BASE_HPP
