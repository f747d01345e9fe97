// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/data/npz.hpp"
#include "npy_encode.hpp"

namespace eigenveil {
namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
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

}  // namespace

Status write_npz(const std::string& path, const std::vector<NamedArray>& arrays, const std::vector<NamedText>& texts,
                 FileModes modes) {
  std::vector<NamedText> members;
  members.reserve(arrays.size() + texts.size());
  for (const auto& array : arrays) members.push_back({array.name + ".npy", data::encode_npy(array)});
  members.insert(members.end(), texts.begin(), texts.end());
  return write_file(path, EIGENVEIL_TRY(pack(members)), modes);
}

}  // namespace eigenveil
