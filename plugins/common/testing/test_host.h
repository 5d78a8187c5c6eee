// TestHost: the smallest host that can load plugins. It keeps what they register and implements attributes; it has no
// graph. For tests of single ops and kernels; thread rule: one thread, except the fail call.
#ifndef TENON_PLUGINS_COMMON_TESTING_TEST_HOST_H_
#define TENON_PLUGINS_COMMON_TESTING_TEST_HOST_H_

#include <tenon/plugin/all.h>

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tenon::testing {

struct DType {
  int32_t number;
};
using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType>;
using AttrMap = std::map<std::string, AttrValue>;

class TestHost {
 public:
  TestHost();
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;
  ~TestHost();

  // Loads $TENON_BUILD_DIR/lib/tenon/plugins/<name>.tnp.so, and <name>_cuda and <name>_nvrtc where kernels of
  // GPUs are tested (device.h). False if there is no such file; a test failure if it does not load.
  bool load(const std::string& name);
  const TnHost* host() const { return &host_; }
  const TnOp* find_op(const std::string& id) const;
  std::vector<const TnKernel*> kernels(const std::string& op_id) const;

  // The reason of the last failure of the calling thread, and its code; taken out.
  std::string take_failure(TnStatus* code = nullptr);

  // `given` with the defaults of the op's schema. REQUIRES: the caller destroys it with host()->attrs->destroy.
  TnAttrs* make_attrs(const TnOp& op, const AttrMap& given) const;

 private:
  TnHost host_{};
  std::vector<const TnOp*> ops_;
  std::vector<const TnKernel*> kernels_;
  std::vector<void*> libraries_;
  std::vector<const TnPlugin*> plugins_;
};

}  // namespace tenon::testing

#endif  // TENON_PLUGINS_COMMON_TESTING_TEST_HOST_H_
