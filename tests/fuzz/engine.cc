// The reader of engine files, and kernels that come to life from one. An input is a whole file, whose header is sealed
// anew, or the size of its plan section (4 bytes, little-endian), this section and that of the constants: checksums
// would stop everything else.
#include <algorithm>
#include <cstring>

#include "core/device/device.h"
#include "core/plan/file_header.h"
#include "core/plan/plan_file.h"
#include "core/plan/plan_layout.h"
#include "tests/fuzz/fuzzing.h"

namespace {

const tenon::Library& library() {
  static const tenon::Library all = tenon::fuzzing::quiet_library("tenon.conv2d");
  return all;
}

using Bytes = std::vector<std::uint8_t>;

std::shared_ptr<std::uint8_t> aligned(const Bytes& bytes) {
  std::shared_ptr<std::uint8_t> copy(
      static_cast<std::uint8_t*>(std::aligned_alloc(4096, tenon::align_up(bytes.size() + 1, 4096))), std::free);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return copy;
}

tenon::Result<tenon::Plan> read(const Bytes& file) {
  const auto copy = aligned(file);
  return tenon::read_plan(copy.get(), file.size(), copy);
}

std::uint64_t hash(const Bytes& file, const tenon::Section& section) {
  return tenon::hash64({reinterpret_cast<const char*>(file.data()) + section.offset, section.size});
}

/// A file of the two sections.
Bytes file_of(const std::uint8_t* data, std::size_t size) {
  std::uint32_t plan_size = 0;
  if (size >= 4) std::memcpy(&plan_size, data, 4);
  const std::size_t at = std::min<std::size_t>(size, 4);
  tenon::FileHeader header;
  header.info = {tenon::kFormatVersion, "0", tenon::this_os(), tenon::this_arch(), "", 0};
  header.plan = {tenon::kHeaderBytes, std::min<std::size_t>(plan_size, size - at), 0};
  header.constants.size = size - at - header.plan.size;
  header.constants.offset = tenon::align_up(header.plan.offset + header.plan.size, tenon::kSectionAlignment);
  header.info.file_bytes = header.constants.offset + header.constants.size;
  Bytes file(header.info.file_bytes);
  std::copy_n(data + at, header.plan.size, file.begin() + static_cast<std::ptrdiff_t>(header.plan.offset));
  std::copy_n(data + at + header.plan.size, header.constants.size,
              file.begin() + static_cast<std::ptrdiff_t>(header.constants.offset));
  header.plan.checksum = hash(file, header.plan);
  header.constants.checksum = hash(file, header.constants);
  const std::string text = tenon::write_file_header(header);
  std::copy(text.begin(), text.end(), file.begin());
  return file;
}

/// The file with the checksum of its header, which is the header's last line, made right.
Bytes sealed(Bytes file) {
  constexpr std::size_t kLine = sizeof "header_checksum: 0x0123456789abcdef";
  if (file.size() < tenon::kHeaderBytes) return file;
  const std::string_view body(reinterpret_cast<const char*>(file.data()), tenon::kHeaderBytes - kLine);
  char line[kLine + 1];
  std::snprintf(line, sizeof line, "header_checksum: 0x%016llx\n",
                static_cast<unsigned long long>(tenon::hash64(body)));
  std::memcpy(file.data() + body.size(), line, kLine);
  return file;
}

void load(const Bytes& file) {
  TnEngine* engine = nullptr;
  if (tn_engine_create(library().get(), file.data(), file.size(), "cpu", 1, &engine) != TN_OK) {
    tenon::fuzzing::require(*tn_last_error() != '\0', "a failure without a message");
    return;
  }
  TnText* text = nullptr;
  tenon::fuzzing::require(tn_engine_inspect(engine, -1, "json", &text) == TN_OK, tn_last_error());
  tn_text_release(text);
  tn_engine_release(engine);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  library();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::fuzzing;
  static const std::string device = tenon::make_cpu_device({1, nullptr})->info().signature;

  const bool whole = as_text(data, size).substr(0, 12) == "TENON ENGINE";
  const Bytes file = whole ? sealed(Bytes(data, data + size)) : file_of(data, size);
  auto plan = read(file);
  require(plan.ok() || !plan.status().message().empty(), "a failure without a message");
  if (!plan.ok()) return 0;
  // What was read can be written, and is then the same.
  const auto written = tenon::write_plan(*plan);
  require(written.ok(), written.status().message());
  const auto again = read(*written);
  require(again.ok(), again.status().message());
  require(tenon::write_plan(*again).value() == *written, "a plan changes when it is written and read");
  // As if it had been built here.
  plan->device_kind = "cpu";
  plan->device_signature = device;
  plan->threads = 0;
  plan->plugins.clear();
  load(tenon::write_plan(*plan).value());
  return 0;
}
