#include "eigenveil/release/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "atomic_file.hpp"
#include "npy.hpp"

namespace eigenveil {
namespace {

constexpr std::string_view kArraySuffix = ".npy";

/// What a file may take in memory once it is read. Models are noise, which does not pack: one that unpacks to many
/// times its size was made to do so.
class Allowance {
 public:
  explicit Allowance(std::uint64_t file_bytes)
      : left_(std::min(kMost, kAlways + kTimes * std::min(file_bytes, kMost / kTimes))) {}

  std::uint64_t left() const { return left_; }
  bool take(std::uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  static constexpr std::uint64_t kAlways = std::uint64_t{64} << 20U;
  static constexpr std::uint64_t kTimes = 16;
  static constexpr std::uint64_t kMost = std::uint64_t{8} << 30U;
  std::uint64_t left_;
};

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class T>
using Owned = std::unique_ptr<T, Discard>;

/// One member, stored as it is and dated 1 January 1980, the first day a zip can name.
bool add_member(zip_t* archive, const std::string& name, const std::string& bytes) {
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  if (source == nullptr) return false;
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  const auto member = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t kFirstDay = (1U << 5U) | 1U;  // month 1, day 1, years since 1980: 0
  return zip_set_file_compression(archive, member, ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(archive, member, 0, kFirstDay, 0) == 0;
}

/// All bytes of a finished in-memory archive.
Result<std::string> bytes_of(zip_source_t* source) {
  zip_stat_t status;
  if (zip_source_stat(source, &status) != 0 || zip_source_open(source) != 0) {
    return internal_error("The model archive could not be read back from memory.");
  }
  std::string bytes(status.size, '\0');
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) {
    return internal_error("The model archive could not be read back from memory.");
  }
  return bytes;
}

Result<std::string> pack(const std::vector<NamedText>& members) {
  zip_error_t error;
  zip_error_init(&error);
  const Owned<zip_source_t> buffer(zip_source_buffer_create(nullptr, 0, 0, &error));
  if (!buffer) return internal_error("There is no memory for the model archive.");
  zip_source_keep(buffer.get());  // one reference for the archive, one for reading back
  Owned<zip_t> archive(zip_open_from_source(buffer.get(), ZIP_TRUNCATE, &error));
  if (!archive) {
    zip_source_free(buffer.get());
    return internal_error(fmt::format("The model archive could not be started: {}.", zip_error_strerror(&error)));
  }
  for (const auto& [name, bytes] : members) {
    if (!add_member(archive.get(), name, bytes)) {
      return internal_error(
          fmt::format("The member '{}' could not be added to the archive: {}.", name, zip_strerror(archive.get())));
    }
  }
  if (zip_close(archive.get()) != 0) {
    return internal_error(fmt::format("The model archive could not be finished: {}.", zip_strerror(archive.get())));
  }
  static_cast<void>(archive.release());
  return bytes_of(buffer.get());
}

Result<Owned<zip_t>> open_archive(const std::string& path) {
  int code = 0;
  // CHECKCONS also refuses two members of one name.
  Owned<zip_t> archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive) return archive;
  if (code == ZIP_ER_NOENT) return bad_input(fmt::format("{}: there is no such file.", path));
  if (code == ZIP_ER_OPEN || code == ZIP_ER_READ) {
    return bad_input(fmt::format("{}: cannot be opened. Give a file that you may read.", path));
  }
  return bad_input(
      fmt::format("{}: is not an NPZ file, or was cut off. Give a file that eigenveil or numpy.savez wrote.", path));
}

/// One member of an archive on its way into memory. Nothing is taken before what the member announces was allowed, and
/// found to fit its own header.
class Member {
 public:
  Member(zip_t* archive, zip_uint64_t index, std::string where) : where_(std::move(where)) {
    zip_stat_t facts;
    zip_stat_init(&facts);
    if (zip_stat_index(archive, index, 0, &facts) == 0 && (facts.valid & ZIP_STAT_SIZE) != 0) size_ = facts.size;
    opened_.reset(zip_fopen_index(archive, index, 0));
    if (!opened_) why_ = zip_strerror(archive);
  }

  Result<std::string> read(bool is_array, Allowance& allowance) {
    if (!opened_ || !size_) return damaged(opened_ ? "its size is not stated" : why_.c_str());
    if (!allowance.take(*size_))
      return damaged(fmt::format("it unpacks to {} bytes, more than a model of this file's size can have", *size_));
    std::string bytes;
    EIGENVEIL_TRY(append(bytes, kFirst));
    if (is_array) EIGENVEIL_TRY(check_npy_size(bytes, *size_, where_));
    bytes.reserve(*size_);
    EIGENVEIL_TRY(append(bytes, *size_));
    char more = 0;
    if (bytes.size() != *size_ || zip_fread(opened_.get(), &more, 1) != 0)
      return damaged(fmt::format("it does not have the {} bytes that it announces", *size_));
    return bytes;
  }

 private:
  static constexpr std::size_t kFirst = 1U << 16U;

  Error damaged(std::string_view why) const {
    return bad_input(fmt::format("{}: cannot be read ({}). The file is damaged; make it again.", where_, why));
  }

  /// Reads on until `bytes` has that many, or the member ends.
  Status append(std::string& bytes, std::uint64_t until) {
    std::array<char, kFirst> block;
    until = std::min(until, *size_);
    while (bytes.size() < until) {
      const zip_int64_t got =
          zip_fread(opened_.get(), block.data(), std::min<std::uint64_t>(block.size(), until - bytes.size()));
      if (got < 0) return damaged(zip_error_strerror(zip_file_get_error(opened_.get())));
      if (got == 0) return {};
      bytes.append(block.data(), static_cast<std::size_t>(got));
    }
    return {};
  }

  std::string where_;
  std::string why_;
  std::optional<std::uint64_t> size_;
  Owned<zip_file_t> opened_;
};

}  // namespace

Status write_npz(const std::string& path, const std::vector<NamedArray>& arrays, const std::vector<NamedText>& texts) {
  std::vector<NamedText> members;
  members.reserve(arrays.size() + texts.size());
  for (const auto& array : arrays)
    members.push_back({fmt::format("{}{}", array.name, kArraySuffix), encode_npy(array)});
  members.insert(members.end(), texts.begin(), texts.end());
  const auto bytes = pack(members);
  if (!bytes.ok()) return bytes.error();
  return write_text_file(path, *bytes);
}

Result<NpzContents> read_npz(const std::string& path) {
  auto archive = open_archive(path);
  if (!archive.ok()) return archive.error();
  NpzContents contents;
  std::error_code unknown;
  const std::uintmax_t file_bytes = std::filesystem::file_size(path, unknown);
  Allowance allowance(unknown ? 0 : file_bytes);
  const auto members = static_cast<zip_uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(archive->get(), 0), 0));
  for (zip_uint64_t index = 0; index < members; ++index) {
    const char* raw_name = zip_get_name(archive->get(), index, 0);
    std::string name = raw_name == nullptr ? "" : raw_name;
    const std::string where = fmt::format("{}: member '{}'", path, name);
    const bool is_array = name.ends_with(kArraySuffix);
    auto bytes = Member(archive->get(), index, where).read(is_array, allowance);
    if (!bytes.ok()) return bytes.error();
    if (!is_array) {
      contents.texts.push_back({std::move(name), *std::move(bytes)});
      continue;
    }
    name.resize(name.size() - kArraySuffix.size());
    auto array = decode_npy(std::move(name), *bytes, where, allowance.left() / sizeof(double));
    if (!array.ok()) return array.error();
    allowance.take(static_cast<std::uint64_t>(array->values.size()) * sizeof(double));
    contents.arrays.push_back(*std::move(array));
  }
  return contents;
}

}  // namespace eigenveil
