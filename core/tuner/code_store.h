// CodeStore: what kernels compile while an engine is built, by the text that it was compiled from, in memory and in the
// file F.code beside a timing cache F; and `tenon.code/1`, through which kernels reach the store of the build at hand.
//
// Thread rule: thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tenon/status.hpp>

#include "core/base/logger.h"

namespace tenon {

/// Pieces of code in the order of their coming; beyond a limit the oldest are dropped.
class CodePieces {
 public:
  struct Piece {
    std::string key;
    std::shared_ptr<const std::string> code;
  };
  /// `limit`: bytes of the file. Pieces so large that few would fit are not taken.
  explicit CodePieces(std::size_t limit) : limit_(limit) {}
  CodePieces(CodePieces&&) = default;
  CodePieces& operator=(CodePieces&&) = default;
  /// Replaces the piece of equal key, in its place. False if it is there already, or not taken.
  bool put(Piece piece);
  const Piece* find(const std::string& key) const;
  const std::list<Piece>& all() const { return pieces_; }
  std::size_t bytes() const { return bytes_; }  ///< in a file, without its header

 private:
  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<Piece> pieces_;
  std::unordered_map<std::string_view, std::list<Piece>::iterator> index_;  ///< keys lie in pieces_
};

class CodeStore {
 public:
  static constexpr std::size_t kLimit = std::size_t{256} << 20;
  explicit CodeStore(std::size_t limit = kLimit) : limit_(limit), pieces_(limit) {}

  std::shared_ptr<const std::string> find(const std::string& key) const;  ///< nullptr: not there
  void put(std::string key, std::string code);
  void combine(const CodeStore& other);  ///< takes over the other's pieces; own ones win
  struct Size {
    std::size_t pieces = 0, bytes = 0;
  };
  Size size() const;

  /// Takes in what a file has. Never fails: damaged pieces, and a file that cannot be read, cost a warning.
  void load(const std::filesystem::path& path, Logger& logger);
  /// Merges with what is on disk and replaces the file, if this store has something new. A file that is no CodeStore's,
  /// or of another version, stays as it is, with a failure. REQUIRES: no other process writes the file; the lock of the
  /// timing cache is held.
  Status save(const std::filesystem::path& path, Logger& logger);

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  CodePieces pieces_;
  std::filesystem::path loaded_;  ///< damage of this file has been reported
};

/// While it lives, `tenon.code/1` reaches `store` on this thread. `store` outlives it.
class CodeScope {
 public:
  explicit CodeScope(CodeStore* store);
  ~CodeScope();
  CodeScope(const CodeScope&) = delete;
  CodeScope& operator=(const CodeScope&) = delete;

 private:
  CodeStore* outer_;
};

/// The TnCode that a registry offers plugins as TN_IFACE_CODE.
const void* code_interface();

}  // namespace tenon
