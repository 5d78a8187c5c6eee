/// How a plugin written in C++ fails: it throws, and the barrier turns the exception into a status and a text.
///
/// Throw Declined for "not by me", Invalid for wrong input. Any other exception becomes TN_INTERNAL with its text, so
/// no exception ever crosses the ABI. Thread rule: everything here is [any].
#ifndef TENON_SDK_ERROR_HPP
#define TENON_SDK_ERROR_HPP

#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>

#include "../plugin/host.h"

namespace tenon {
inline namespace sdk {

/// The arguments one after the other, as operator<< writes them: text("expected ", 4, ", found ", n).
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// A status with its reason. The place is the line that constructs it.
class Failure : public std::exception {
 public:
  Failure(TnStatus code, std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : code_(code), message_(std::move(message)), where_(text(file, ":", line)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  TnStatus code() const { return code_; }
  const char* where() const { return where_.c_str(); }

 private:
  TnStatus code_;
  std::string message_;
  std::string where_;
};

/// A normal answer of a kernel, an importer or a rule: "not by me, because ...".
class Declined : public Failure {
 public:
  explicit Declined(std::string reason, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : Failure(TN_DECLINED, std::move(reason), file, line) {}
};

/// The caller's input is wrong. The message names the thing, what was expected and what was found.
class Invalid : public Failure {
 public:
  explicit Invalid(std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : Failure(TN_INVALID, std::move(message), file, line) {}
};

/// A call to the host failed and the host has recorded why; the barrier hands the code back unchanged.
class HostFailure : public std::exception {
 public:
  explicit HostFailure(TnStatus code) : code_(code) {}
  const char* what() const noexcept override { return "a call to the host failed"; }
  TnStatus code() const { return code_; }

 private:
  TnStatus code_;
};

/// Throws HostFailure unless `status` is TN_OK.
inline void check_host(TnStatus status) {
  if (status != TN_OK) throw HostFailure(status);
}

/// The barrier: runs `body`; success gives TN_OK, an exception its status, after host->fail got the text.
template <class Body>
TnStatus guard(const TnHost* host, Body&& body) noexcept {
  try {
    body();
    return TN_OK;
  } catch (const HostFailure& failure) {
    return failure.code();
  } catch (const Failure& failure) {
    return host->fail(host, failure.code(), failure.where(), failure.what());
  } catch (const std::bad_alloc&) {
    return TN_FAIL(host, TN_NOMEM, "out of memory");
  } catch (const std::exception& error) {
    return TN_FAIL(host, TN_INTERNAL, error.what());
  } catch (...) {
    return TN_FAIL(host, TN_INTERNAL, "an exception that is no std::exception");
  }
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_ERROR_HPP
