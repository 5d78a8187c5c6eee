#include "core/base/failure.h"

namespace tenon {
namespace {

struct Failure {
  TnStatus code = TN_OK;
  std::string message;
};

Failure& thread_failure() {
  thread_local Failure failure;
  return failure;
}

}  // namespace

void record_failure(TnStatus code, const char* /*where*/, const char* message) {
  Failure& failure = thread_failure();
  failure.code = code;
  failure.message = message != nullptr ? message : "";
}

void clear_failure() { thread_failure() = Failure(); }

Status take_failure(TnStatus code, const std::string& call) {
  Failure failure = std::move(thread_failure());
  thread_failure() = Failure();
  if (code == TN_OK) return {};
  const bool known = code >= TN_DECLINED && code <= TN_CANCELLED;
  const Code result = known ? static_cast<Code>(code) : Code::kInternal;
  if (failure.code == TN_OK || failure.message.empty()) {
    return {result, call + ": failed with code " + std::to_string(code) +
                        " and gave no reason; that is a fault of the plugin (it must call host->fail)"};
  }
  return {result, call + ": " + failure.message};
}

}  // namespace tenon
