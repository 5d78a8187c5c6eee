#include "plugins/common/testing/test_host.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "plugins/common/testing/device.h"

struct TnAttrs {
  tenon::testing::AttrMap values;
  std::map<std::string, std::vector<const char*>> texts;  // what get_strs hands out
};

namespace tenon::testing {
namespace {

thread_local std::string failure_text;
thread_local TnStatus failure_code = TN_OK;

TnStatus TN_CALL fail(const TnHost*, TnStatus code, const char*, const char* message) {
  failure_code = code;
  failure_text = message;
  return code;
}

template <class T>
TnStatus find(const TnAttrs* attrs, const char* name, const T** out) {
  const auto found = attrs->values.find(name);
  if (found == attrs->values.end()) return TN_NOTFOUND;
  *out = std::get_if<T>(&found->second);
  return *out ? TN_OK : TN_INVALID;
}

template <class T, class Out>
TnStatus get(const TnAttrs* attrs, const char* name, Out&& out) {
  const T* value = nullptr;
  const TnStatus status = find(attrs, name, &value);
  if (status == TN_OK) out(*value);
  return status;
}

template <class T>
std::vector<T> parse_list(std::string text) {
  std::vector<T> values;
  for (char& c : text) c = c == ',' ? ' ' : c;
  std::istringstream stream(text);
  for (T value; stream >> value;) values.push_back(value);
  return values;
}

AttrValue parse(int32_t type, const std::string& text) {
  switch (type) {
    case TN_ATTR_I64:
      return int64_t{std::stoll(text)};
    case TN_ATTR_F64:
      return std::stod(text);
    case TN_ATTR_I64S:
      return parse_list<int64_t>(text);
    case TN_ATTR_F64S:
      return parse_list<double>(text);
    case TN_ATTR_STRS:
      return parse_list<std::string>(text);
    case TN_ATTR_DTYPE:
      return DType{std::stoi(text)};
    default:
      return text;
  }
}

const TnAttrApi& attr_api() {
  static const TnAttrApi api = [] {
    TnAttrApi a{};
    a.struct_size = TN_HEADER(TnAttrApi);
    a.get_i64 = [](const TnAttrs* s, const char* n, int64_t* out) {
      return get<int64_t>(s, n, [&](int64_t v) { *out = v; });
    };
    a.get_f64 = [](const TnAttrs* s, const char* n, double* out) {
      return get<double>(s, n, [&](double v) { *out = v; });
    };
    a.get_str = [](const TnAttrs* s, const char* n, const char** out) {
      return get<std::string>(s, n, [&](const std::string& v) { *out = v.c_str(); });
    };
    a.get_i64s = [](const TnAttrs* s, const char* n, const int64_t** out, uint32_t* count) {
      return get<std::vector<int64_t>>(s, n, [&](const auto& v) {
        *out = v.data();
        *count = static_cast<uint32_t>(v.size());
      });
    };
    a.get_f64s = [](const TnAttrs* s, const char* n, const double** out, uint32_t* count) {
      return get<std::vector<double>>(s, n, [&](const auto& v) {
        *out = v.data();
        *count = static_cast<uint32_t>(v.size());
      });
    };
    a.get_strs = [](const TnAttrs* s, const char* n, const char* const** out, uint32_t* count) {
      return get<std::vector<std::string>>(s, n, [&](const auto& v) {
        auto& list = const_cast<TnAttrs*>(s)->texts[n];
        list.clear();
        for (const std::string& text : v) list.push_back(text.c_str());
        *out = list.data();
        *count = static_cast<uint32_t>(list.size());
      });
    };
    a.get_tensor = [](const TnAttrs*, const char*, TnTensor*) { return static_cast<TnStatus>(TN_NOTFOUND); };
    a.get_dtype = [](const TnAttrs* s, const char* n, int32_t* out) {
      return get<DType>(s, n, [&](DType v) { *out = v.number; });
    };
    a.get_graph = [](const TnAttrs*, const char*, const TnGraph**) { return static_cast<TnStatus>(TN_NOTFOUND); };
    a.create = [](const TnAttrs* from) { return from ? new TnAttrs(*from) : new TnAttrs; };
    a.destroy = [](TnAttrs* attrs) { delete attrs; };
    return a;
  }();
  return api;
}

}  // namespace

TestHost::TestHost() {
  host_.struct_size = TN_HEADER(TnHost);
  host_.abi_major = TN_ABI_MAJOR;
  host_.abi_minor = TN_ABI_MINOR_LATEST;
  host_.name = "tenon-test";
  host_.version = "0";
  host_.impl = this;
  host_.fail = fail;
  host_.log = [](const TnHost*, int32_t, const char*) {};
  host_.alloc = [](const TnHost*, uint64_t bytes, uint64_t align) {
    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
  };
  host_.free = [](const TnHost*, void* memory) { std::free(memory); };
  host_.get_interface = [](const TnHost*, const char*) -> const void* { return nullptr; };
  host_.register_op = [](const TnHost* host, const TnOp* op) {
    static_cast<TestHost*>(host->impl)->ops_.push_back(op);
    return static_cast<TnStatus>(TN_OK);
  };
  host_.register_kernel = [](const TnHost* host, const TnKernel* kernel) {
    static_cast<TestHost*>(host->impl)->kernels_.push_back(kernel);
    if (kernel->device == TN_CUDA) cuda_tests().loaded.insert(kernel->name);
    return static_cast<TnStatus>(TN_OK);
  };
  host_.register_fusion = [](const TnHost*, const TnFusion*) { return static_cast<TnStatus>(TN_OK); };
  host_.register_importer = [](const TnHost*, const TnImporter*) { return static_cast<TnStatus>(TN_OK); };
  host_.register_op_importer = [](const TnHost*, const TnOpImporter*) { return static_cast<TnStatus>(TN_OK); };
  host_.attrs = &attr_api();
}

TestHost::~TestHost() {
  for (const TnPlugin* plugin : plugins_) {
    if (plugin->unload) plugin->unload(&host_);
  }
  for (void* library : libraries_) dlclose(library);
}

bool TestHost::load(const std::string& name) {
  const char* folder = std::getenv("TENON_BUILD_DIR");
  const std::string path = std::string(folder ? folder : ".") + "/lib/tenon/plugins/" + name + ".tnp.so";
  if (!std::filesystem::exists(path)) return false;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    ADD_FAILURE() << dlerror();
    return false;
  }
  libraries_.push_back(library);
  const auto query = reinterpret_cast<decltype(&tenon_plugin_query)>(dlsym(library, "tenon_plugin_query"));
  const TnPlugin* plugin = query ? query(TN_ABI_MAJOR, TN_ABI_MINOR_LATEST) : nullptr;
  if (!plugin) {
    ADD_FAILURE() << path << ": no plugin";
    return false;
  }
  plugins_.push_back(plugin);
  EXPECT_EQ(plugin->load(&host_), TN_OK) << path << ": " << take_failure();
  const size_t word = name.rfind('_');
  const std::string kind = word == std::string::npos ? "" : name.substr(word);
  if (cuda_tests().enabled && kind != "_cuda" && kind != "_nvrtc") {
    load(name + "_cuda");
    load(name + "_nvrtc");
  }
  return true;
}

const TnOp* TestHost::find_op(const std::string& id) const {
  for (const TnOp* op : ops_) {
    if (id == op->id) return op;
  }
  return nullptr;
}

std::vector<const TnKernel*> TestHost::kernels(const std::string& op_id) const {
  std::vector<const TnKernel*> result;
  for (const TnKernel* kernel : kernels_) {
    if (op_id == kernel->op_id) result.push_back(kernel);
  }
  return result;
}

std::string TestHost::take_failure(TnStatus* code) {
  if (code) *code = failure_code;
  failure_code = TN_OK;
  return std::move(failure_text);
}

TnAttrs* TestHost::make_attrs(const TnOp& op, const AttrMap& given) const {
  TnAttrs* attrs = new TnAttrs;
  attrs->values = given;
  for (uint32_t n = 0; n < op.num_params; ++n) {
    const TnParam& param = *op.params[n];
    if (param.default_text) attrs->values.emplace(param.name, parse(param.type, param.default_text));
  }
  for (const auto& [name, value] : given) {
    bool known = false;
    for (uint32_t n = 0; n < op.num_params; ++n) known = known || name == op.params[n]->name;
    EXPECT_TRUE(known) << op.id << " has no attribute " << name;
  }
  return attrs;
}

}  // namespace tenon::testing
