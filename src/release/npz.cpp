#include "eigenveil/release/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>

#include "atomic_file.hpp"
#include "npy.hpp"

namespace eigenveil {
namespace {

constexpr std::string_view kArraySuffix = ".npy";

/// No member of a model comes near it; a file that unpacks to more is refused before the memory is gone.
constexpr zip_uint64_t kLargestMember = zip_uint64_t{1} << 30U;

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

Result<std::string> read_member(zip_t* archive, zip_uint64_t index, const std::string& where) {
  const auto damaged = [&](const char* why) {
    return bad_input(fmt::format("{}: cannot be read ({}). The file is damaged; make it again.", where, why));
  };
  const Owned<zip_file_t> member(zip_fopen_index(archive, index, 0));
  if (!member) return damaged(zip_strerror(archive));
  std::string bytes;
  std::array<char, 1U << 16U> block{};
  while (true) {
    const zip_int64_t got = zip_fread(member.get(), block.data(), block.size());
    if (got < 0) return damaged(zip_error_strerror(zip_file_get_error(member.get())));
    if (got == 0) return bytes;
    bytes.append(block.data(), static_cast<std::size_t>(got));
    if (bytes.size() > kLargestMember) return damaged("it unpacks to more than 1 GiB");
  }
}

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
  const auto members = static_cast<zip_uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(archive->get(), 0), 0));
  for (zip_uint64_t index = 0; index < members; ++index) {
    const char* raw_name = zip_get_name(archive->get(), index, 0);
    std::string name = raw_name == nullptr ? "" : raw_name;
    const std::string where = fmt::format("{}: member '{}'", path, name);
    auto bytes = read_member(archive->get(), index, where);
    if (!bytes.ok()) return bytes.error();
    if (!name.ends_with(kArraySuffix)) {
      contents.texts.push_back({std::move(name), *std::move(bytes)});
      continue;
    }
    name.resize(name.size() - kArraySuffix.size());
    auto array = decode_npy(std::move(name), *bytes, where);
    if (!array.ok()) return array.error();
    contents.arrays.push_back(*std::move(array));
  }
  return contents;
}

}  // namespace eigenveil
