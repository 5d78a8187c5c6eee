// Status and Result<T>: how every Tenon C++ function reports failure. Nothing in Tenon's C++ API throws.
//
// Thread rule: plain values; copy them freely between threads.
#ifndef TENON_STATUS_HPP
#define TENON_STATUS_HPP

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace tenon {

/// What went wrong, in one word. The numbers equal TnStatus of the plugin ABI (include/tenon/plugin/abi.h).
enum class Code : std::int32_t {
  kOk = 0,
  kDeclined = 1,  ///< "not by me": a normal answer of a kernel, with a reason
  kInvalid = 2,   ///< the caller's input is wrong
  kNoMemory = 3,
  kNotFound = 4,
  kIo = 5,
  kDevice = 6,      ///< the device or its driver failed
  kVersion = 7,     ///< written by, or made for, another version
  kInternal = 8,    ///< a fault of Tenon or of a plugin
  kConflict = 9,    ///< two things claim one name
  kCancelled = 10,  ///< the user asked to stop
};

/// Name of a code for messages, such as "invalid". Static storage.
constexpr const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kDeclined:
      return "declined";
    case Code::kInvalid:
      return "invalid";
    case Code::kNoMemory:
      return "no memory";
    case Code::kNotFound:
      return "not found";
    case Code::kIo:
      return "i/o error";
    case Code::kDevice:
      return "device error";
    case Code::kVersion:
      return "version mismatch";
    case Code::kInternal:
      return "internal error";
    case Code::kConflict:
      return "conflict";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

/// Success, or a code with a message that names the thing, says expected and found, and ends with what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok_status() { return {}; }
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same failure with `context + ": "` before its message; success stays success.
  Status with_context(const std::string& context) const {
    return ok() ? *this : Status(code_, context + ": " + message_);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

/// A value or the Status that says why there is none. REQUIRES: ok() before value() or operator*.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;`
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: `return status;`

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    assert(ok());
    return *value_;
  }
  const T& value() const& {
    assert(ok());
    return *value_;
  }
  T&& value() && {
    assert(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

/// Leaves the enclosing function with the Status of `expression` unless it is ok.
#define TENON_RETURN_IF_ERROR(expression)          \
  do {                                             \
    ::tenon::Status tenon_status_ = (expression);  \
    if (!tenon_status_.ok()) return tenon_status_; \
  } while (false)

#define TENON_CONCAT_INNER_(a, b) a##b
#define TENON_CONCAT_(a, b) TENON_CONCAT_INNER_(a, b)

/// `TENON_ASSIGN(auto x, function());` declares x from a Result, or leaves with its Status.
#define TENON_ASSIGN(declaration, expression) \
  TENON_ASSIGN_IMPL_(TENON_CONCAT_(tenon_result_, __LINE__), declaration, expression)
#define TENON_ASSIGN_IMPL_(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return result.status();                 \
  declaration = std::move(result).value()

}  // namespace tenon

#endif  // TENON_STATUS_HPP
