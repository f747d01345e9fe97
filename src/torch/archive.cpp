// SPDX-License-Identifier: Apache-2.0
#include "archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>

namespace eigenveil {
namespace {

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

Error no_archive() { return bad_input("is no TorchScript module; write it with torch.jit.save"); }

// An archive in memory, open to be read or changed.
struct Opened {
  Owned<zip_source_t> source;
  Owned<zip_t> archive;
};

Result<Opened> open_archive(const std::string& bytes) {
  zip_error_t error;
  zip_error_init(&error);
  Opened opened;
  opened.source.reset(zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error));
  if (!opened.source) return internal_error("There is no memory for the module.");
  zip_source_keep(opened.source.get());  // one reference for the archive, one for reading back
  opened.archive.reset(zip_open_from_source(opened.source.get(), ZIP_CHECKCONS, &error));
  if (opened.archive) return opened;
  zip_source_free(opened.source.get());
  return no_archive();
}

// ".../data/7": the numbers of a tensor, stored as they are.
bool is_record(zip_t* archive, zip_uint64_t index, zip_uint64_t& size) {
  zip_stat_t status;
  if (zip_stat_index(archive, index, 0, &status) != 0) return false;
  constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_COMP_SIZE;
  if ((status.valid & kNeeded) != kNeeded || status.comp_method != ZIP_CM_STORE || status.comp_size != status.size)
    return false;
  const std::string name = status.name;
  const std::size_t last = name.rfind('/');
  size = status.size;
  return last != std::string::npos && last >= 5 && name.substr(last - 5, 6) == "/data/" && last + 1 < name.size() &&
         name.find_first_not_of("0123456789", last + 1) == std::string::npos;
}

Result<std::string> record_at(zip_t* archive, zip_uint64_t index) {
  zip_uint64_t size = 0;
  if (!is_record(archive, index, size)) return no_archive();
  const Owned<zip_file_t> member(zip_fopen_index(archive, index, 0));
  std::string bytes(size, '\0');
  if (!member || zip_fread(member.get(), bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size()))
    return no_archive();
  return bytes;
}

// `bytes` must live until the archive is closed.
Status put(zip_t* archive, zip_int64_t index, const char* name, const std::string& bytes) {
  Owned<zip_source_t> source(zip_source_buffer(archive, bytes.data(), bytes.size(), 0));
  const bool there = index >= 0;
  if (!there && source) index = zip_file_add(archive, name, source.get(), ZIP_FL_ENC_UTF_8);
  const auto at = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t kFirstDay = (1U << 5U) | 1U;  // 1 January 1980, the first day a zip can name
  if (!source || index < 0 || (there && zip_file_replace(archive, at, source.get(), 0) != 0))
    return internal_error("the module could not be rewritten");
  static_cast<void>(source.release());
  if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, at, 0, kFirstDay, 0) != 0)
    return internal_error("the module could not be rewritten");
  return {};
}

Result<std::string> closed(Opened opened) {
  if (zip_close(opened.archive.get()) != 0) return internal_error("the module could not be rewritten");
  static_cast<void>(opened.archive.release());
  zip_stat_t status;
  if (zip_source_stat(opened.source.get(), &status) != 0 || zip_source_open(opened.source.get()) != 0)
    return internal_error("the module could not be rewritten");
  std::string bytes(status.size, '\0');
  const zip_int64_t got = zip_source_read(opened.source.get(), bytes.data(), bytes.size());
  zip_source_close(opened.source.get());
  if (got != static_cast<zip_int64_t>(bytes.size())) return internal_error("the module could not be rewritten");
  return bytes;
}

// The records that hold parameters. Refuses places that are outside of them.
Result<std::map<std::uint64_t, std::string>> records_of(zip_t* archive, const std::vector<ParameterPlace>& places) {
  std::map<std::uint64_t, std::string> records;
  for (const ParameterPlace& place : places) {
    if (!records.contains(place.record)) {
      auto bytes = EIGENVEIL_TRY(record_at(archive, place.record));
      records.emplace(place.record, std::move(bytes));
    }
    const std::uint64_t size = records.at(place.record).size();
    if (place.count > size || place.offset > size || place.bytes() > size - place.offset)
      return bad_input("its parameters are not among its numbers; save it again with torch.jit.save");
  }
  return records;
}

// In the folder that all members are in.
std::string manifest_name(zip_t* archive) {
  const char* first = zip_get_name(archive, 0, 0);
  const std::string name = first == nullptr ? "" : first;
  return name.substr(0, name.find('/')) + "/extra/eigenveil.json";
}

}  // namespace

Result<std::optional<std::string>> manifest_in(const std::string& archive) {
  const auto opened = EIGENVEIL_TRY(open_archive(archive));
  zip_stat_t status;
  if (zip_stat(opened.archive.get(), manifest_name(opened.archive.get()).c_str(), 0, &status) != 0)
    return std::optional<std::string>();
  if ((status.valid & ZIP_STAT_SIZE) == 0 || status.size > archive.size())  // ours are stored as they are
    return bad_input("its eigenveil.json is not what `clip train` writes");
  const Owned<zip_file_t> member(zip_fopen_index(opened.archive.get(), status.index, 0));
  std::string text(status.size, '\0');
  if (!member || zip_fread(member.get(), text.data(), text.size()) != static_cast<zip_int64_t>(text.size()))
    return bad_input("its eigenveil.json cannot be read");
  return std::optional(std::move(text));
}

Result<std::string> marked_archive(const std::string& archive) {
  auto opened = EIGENVEIL_TRY(open_archive(archive));
  const auto members = static_cast<std::uint32_t>(zip_get_num_entries(opened.archive.get(), 0));
  std::vector<std::string> marks(members);
  for (std::uint32_t index = 0; index < members; ++index) {
    zip_uint64_t size = 0;
    if (!is_record(opened.archive.get(), index, size)) continue;
    if (size > archive.size()) return no_archive();
    marks[index].assign(size, '\0');
    if (size >= sizeof index) std::memcpy(marks[index].data(), &index, sizeof index);
    EIGENVEIL_TRY(put(opened.archive.get(), index, nullptr, marks[index]));
  }
  return closed(std::move(opened));
}

Result<std::vector<double>> numbers_at(const std::string& archive, const std::vector<ParameterPlace>& places) {
  const auto opened = EIGENVEIL_TRY(open_archive(archive));
  const auto records = EIGENVEIL_TRY(records_of(opened.archive.get(), places));
  std::vector<double> numbers;
  for (const ParameterPlace& place : places) {
    const char* from = records.at(place.record).data() + place.offset;
    for (std::uint64_t i = 0; i < place.count; ++i) {
      double wide = 0;
      float narrow = 0;
      std::memcpy(place.is_double ? static_cast<void*>(&wide) : &narrow, from + i * (place.is_double ? 8 : 4),
                  place.is_double ? 8 : 4);
      numbers.push_back(place.is_double ? wide : static_cast<double>(narrow));
    }
  }
  return numbers;
}

Result<std::string> with_numbers(const std::string& archive, const std::vector<ParameterPlace>& places,
                                 std::span<const double> numbers, const std::string& manifest) {
  auto opened = EIGENVEIL_TRY(open_archive(archive));
  zip_t* zip = opened.archive.get();
  auto records = EIGENVEIL_TRY(records_of(zip, places));
  const double* next = numbers.data();
  for (const ParameterPlace& place : places) {
    char* to = records.at(place.record).data() + place.offset;
    for (std::uint64_t i = 0; i < place.count; ++i, ++next) {
      const auto narrow = static_cast<float>(*next);
      std::memcpy(to + i * (place.is_double ? 8 : 4), place.is_double ? static_cast<const void*>(next) : &narrow,
                  place.is_double ? 8 : 4);
    }
  }
  for (const auto& [index, bytes] : records) EIGENVEIL_TRY(put(zip, static_cast<zip_int64_t>(index), nullptr, bytes));
  const std::string extra = manifest_name(zip);
  EIGENVEIL_TRY(put(zip, zip_name_locate(zip, extra.c_str(), 0), extra.c_str(), manifest));
  return closed(std::move(opened));
}

}  // namespace eigenveil
