#include "core/tuner/code_store.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <tenon/plugin/ext/code.h>
#include <tenon/plugin/ext/ids.h>

#include "core/base/failure.h"
#include "core/base/hash.h"
#include "core/tuner/locked_file.h"

namespace tenon {
namespace {

constexpr std::string_view kHeader = "TENON CODE 1   \n";
constexpr std::string_view kMagic = kHeader.substr(0, 11);  // what is left is the version
constexpr std::size_t kMostShare = 4;                       // a piece takes at most this share of the limit

/// Before each piece in a file, in the byte order of x86-64; then come key and code.
struct PieceHead {
  std::uint32_t key_bytes;
  std::uint32_t code_bytes;
  std::uint64_t body_hash;  ///< of key and code
  std::uint64_t head_hash;  ///< of the members before
};
static_assert(sizeof(PieceHead) == 24);

std::uint64_t hash_of(const PieceHead& head) {
  return hash64({reinterpret_cast<const char*>(&head), offsetof(PieceHead, head_hash)});
}

std::size_t bytes_of(const CodePieces::Piece& piece) {
  return sizeof(PieceHead) + piece.key.size() + piece.code->size();
}

std::string file_text(const CodePieces& pieces) {
  std::string text(kHeader);
  text.reserve(text.size() + pieces.bytes());
  for (const CodePieces::Piece& piece : pieces.all()) {
    const std::string body = piece.key + *piece.code;
    PieceHead head = {static_cast<std::uint32_t>(piece.key.size()), static_cast<std::uint32_t>(piece.code->size()),
                      hash64(body), 0};
    head.head_hash = hash_of(head);
    text.append(reinterpret_cast<const char*>(&head), sizeof head);
    text += body;
  }
  return text;
}

struct FileContent {
  CodePieces pieces;
  bool damaged = false;
};

/// What a file has; nothing if there is none. Fails for a file that must stay as it is.
Result<FileContent> read_pieces(const std::filesystem::path& path, std::size_t limit, Logger& logger) {
  FileContent content{CodePieces(limit)};
  const auto bytes = read_file(path);
  if (!bytes.ok() && bytes.status().code() == Code::kNotFound) return content;
  TENON_RETURN_IF_ERROR(bytes.status());
  const std::string_view all = *bytes;
  const auto damage = [&](std::size_t at, const std::string& what) {
    content.damaged = true;
    logger.warning(fmt::format("compiled code {}, byte {}: {}; kernels compile it again", path.string(), at, what));
  };
  if (all.substr(0, kMagic.size()) != kMagic.substr(0, all.size())) {
    return Status(Code::kInvalid, path.string() +
                                      " is not compiled code of a timing cache, so it is left as it is; "
                                      "move it, or use another timing cache");
  }
  if (all.size() < kHeader.size()) {
    if (!all.empty()) damage(0, "the file ends within its header");
    return content;
  }
  if (all.substr(0, kHeader.size()) != kHeader) {
    return Status(Code::kVersion,
                  fmt::format("{} begins with \"{}\", expected \"{}\", so it is left as it is; use "
                              "another timing cache, or delete it",
                              path.string(), all.substr(0, kHeader.size() - 1), kHeader.substr(0, kHeader.size() - 1)));
  }
  for (std::size_t at = kHeader.size(); at < all.size();) {
    PieceHead head;
    if (all.size() - at < sizeof head) {
      damage(at, "the file ends within a piece, which is dropped");
      break;
    }
    std::memcpy(&head, all.data() + at, sizeof head);
    if (head.head_hash != hash_of(head)) {
      damage(at, "the sizes of a piece are damaged; it is dropped with all behind it");
      break;
    }
    const std::size_t size = std::size_t{head.key_bytes} + head.code_bytes;
    if (all.size() - at - sizeof head < size) {
      damage(at, "the file ends within a piece, which is dropped");
      break;
    }
    const std::string_view body = all.substr(at + sizeof head, size);
    if (hash64(body) == head.body_hash) {
      content.pieces.put(
          {std::string(body.substr(0, head.key_bytes)), std::make_shared<std::string>(body.substr(head.key_bytes))});
    } else {
      damage(at, "a piece is damaged, it is dropped");
    }
    at += sizeof head + size;
  }
  return content;
}

}  // namespace

bool CodePieces::put(Piece piece) {
  const std::size_t bytes = bytes_of(piece);
  if (bytes > limit_ / kMostShare) return false;
  const auto known = index_.find(piece.key);
  if (known != index_.end()) {
    Piece& old = *known->second;
    if (old.code == piece.code || *old.code == *piece.code) return false;
    bytes_ += bytes - bytes_of(old);
    old.code = std::move(piece.code);  // the index looks at the old key
  } else {
    const auto added = pieces_.insert(pieces_.end(), std::move(piece));
    index_.emplace(added->key, added);
    bytes_ += bytes;
  }
  while (bytes_ > limit_) {
    bytes_ -= bytes_of(pieces_.front());
    index_.erase(pieces_.front().key);
    pieces_.pop_front();
  }
  return true;
}

const CodePieces::Piece* CodePieces::find(const std::string& key) const {
  const auto known = index_.find(key);
  return known != index_.end() ? &*known->second : nullptr;
}

std::shared_ptr<const std::string> CodeStore::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const CodePieces::Piece* piece = pieces_.find(key);
  return piece != nullptr ? piece->code : nullptr;
}

void CodeStore::put(std::string key, std::string code) {
  CodePieces::Piece piece = {std::move(key), std::make_shared<std::string>(std::move(code))};
  const std::lock_guard lock(mutex_);
  pieces_.put(std::move(piece));
}

void CodeStore::combine(const CodeStore& other) {
  std::list<CodePieces::Piece> theirs;
  {
    const std::lock_guard lock(other.mutex_);
    theirs = other.pieces_.all();
  }
  const std::lock_guard lock(mutex_);
  for (CodePieces::Piece& piece : theirs) {
    if (pieces_.find(piece.key) == nullptr) pieces_.put(std::move(piece));
  }
}

CodeStore::Size CodeStore::size() const {
  const std::lock_guard lock(mutex_);
  return {pieces_.all().size(), pieces_.bytes()};
}

void CodeStore::load(const std::filesystem::path& path, Logger& logger) {
  auto content = read_pieces(path, limit_, logger);
  if (!content.ok()) {
    logger.warning("compiled code: " + content.status().message());
    return;
  }
  const std::lock_guard lock(mutex_);
  for (const CodePieces::Piece& piece : content->pieces.all()) pieces_.put(piece);
  loaded_ = path;
}

Status CodeStore::save(const std::filesystem::path& path, Logger& logger) {
  const std::lock_guard lock(mutex_);
  if (pieces_.all().empty()) return {};
  remove_leftovers(path);
  TENON_ASSIGN(FileContent file, read_pieces(path, limit_, path == loaded_ ? null_logger() : logger));
  bool changed = file.damaged;
  for (const CodePieces::Piece& piece : pieces_.all()) changed = file.pieces.put(piece) || changed;
  if (changed) TENON_RETURN_IF_ERROR(replace_file(path, file_text(file.pieces)));
  pieces_ = std::move(file.pieces);
  return {};
}

// --- tenon.code/1 ---

namespace {

CodeStore*& thread_store() {
  thread_local CodeStore* store = nullptr;
  return store;
}

/// `body` gives a Status; nothing else may leave through the C ABI.
template <class Body>
TnStatus answer(const char* where, Body body) noexcept {
  Status status;
  try {
    status = body();
  } catch (const std::exception& error) {
    record_failure(TN_NOMEM, where, error.what());
    return TN_NOMEM;
  }
  if (status.ok()) return TN_OK;
  const auto code = static_cast<TnStatus>(status.code());
  record_failure(code, where, status.message().c_str());
  return code;
}

TnStatus TN_CALL find_code(const TnHost*, const char* key, TnWriter* out) {
  return answer("TnCode.find", [&]() -> Status {
    if (key == nullptr || out == nullptr) return {Code::kInvalid, "TnCode.find needs a key and a writer"};
    const CodeStore* store = thread_store();
    if (store == nullptr) return {Code::kNotFound, "no engine is being built on this thread"};
    const std::shared_ptr<const std::string> code = store->find(key);
    if (code == nullptr) return {Code::kNotFound, "there is no code of this key"};
    if (out->write(out, code->data(), code->size()) == static_cast<std::int64_t>(code->size())) return {};
    return {Code::kIo, fmt::format("the writer took less than the {} bytes of code", code->size())};
  });
}

TnStatus TN_CALL put_code(const TnHost*, const char* key, const void* code, std::uint64_t size) {
  return answer("TnCode.put", [&]() -> Status {
    if (key == nullptr || code == nullptr) return {Code::kInvalid, "TnCode.put needs a key and code"};
    CodeStore* store = thread_store();
    if (store != nullptr) store->put(key, std::string(static_cast<const char*>(code), size));
    return {};
  });
}

constexpr TnCode kInterface = {TN_HEADER(TnCode), 0, find_code, put_code};

}  // namespace

CodeScope::CodeScope(CodeStore* store) : outer_(std::exchange(thread_store(), store)) {}

CodeScope::~CodeScope() { thread_store() = outer_; }

const void* code_interface() { return &kInterface; }

}  // namespace tenon
