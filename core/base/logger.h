// Where the library's words go: a Logger gets messages, an ErrorRecorder gets failures. The library itself never
// prints.
#pragma once

#include <string>
#include <utility>

#include <tenon/status.hpp>

namespace tenon {

/// Numbers equal TN_LOG_* of the plugin ABI.
enum class Severity : int { kError = 0, kWarning = 1, kInfo = 2, kVerbose = 3 };

/// Thread-safe by contract: log may be called from any thread at any time. Outlives everything that was given it.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(Severity severity, const std::string& message) = 0;
  /// Least important severity that log wants; lets callers skip the work of making verbose texts.
  virtual Severity threshold() const { return Severity::kVerbose; }

  void error(const std::string& message) { log(Severity::kError, message); }
  void warning(const std::string& message) { log(Severity::kWarning, message); }
  void info(const std::string& message) { log(Severity::kInfo, message); }
  void verbose(const std::string& message) {
    if (threshold() >= Severity::kVerbose) log(Severity::kVerbose, message);
  }
};

/// Takes failures in place of the logger. Thread-safe by contract.
class ErrorRecorder {
 public:
  virtual ~ErrorRecorder() = default;
  virtual void record(const Status& status) = 0;
};

/// Swallows everything; what is used where the caller gave no logger.
Logger& null_logger();

/// Hands a failure to the recorder if there is one, to the logger otherwise, and returns it.
Status report_failure(Status status, Logger& logger, ErrorRecorder* recorder);

}  // namespace tenon
