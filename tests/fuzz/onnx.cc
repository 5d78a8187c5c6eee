// The ONNX importer. An input is a model file; "data.bin" beside it is there for external data.
#include "tests/fuzz/fuzzing.h"

namespace {

const tenon::Library& library() {
  static const tenon::Library all = tenon::fuzzing::quiet_library("tenon.onnx");
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  library();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::fuzzing;
  static const Folder folder;
  static const std::string external = folder.write("data.bin", std::string(64, '\x01'));
  import(library(), folder.write("model.onnx", as_text(data, size)), "tenon.onnx");
  return 0;
}
