#include "core/base/logger.h"

namespace tenon {

Logger& null_logger() {
  class NullLogger final : public Logger {
    void log(Severity, const std::string&) override {}
    Severity threshold() const override { return Severity::kError; }
  };
  static NullLogger logger;
  return logger;
}

Status report_failure(Status status, Logger& logger, ErrorRecorder* recorder) {
  if (status.ok()) return status;
  if (recorder != nullptr) {
    recorder->record(status);
  } else {
    logger.error(status.message());
  }
  return status;
}

}  // namespace tenon
