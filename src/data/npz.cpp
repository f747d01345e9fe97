// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "format.hpp"
#include "npy.hpp"
#include "text.hpp"
#include "zip_archive.hpp"

namespace eigenveil::data {
namespace {

constexpr std::string_view kSuffix = ".npy";

struct Member {
  std::string name;  ///< without .npy, as NumPy shows it
  std::size_t index = 0;
};

std::vector<Member> arrays_in(const ZipArchive& archive) {
  std::vector<Member> arrays;
  for (std::size_t i = 0; i < archive.members().size(); ++i)
    if (const auto name = array_name(archive.members()[i])) arrays.push_back({*name, i});
  return arrays;
}

Result<Member> choose(const std::string& path, const std::vector<Member>& members, const std::string& wanted) {
  if (members.empty())
    return bad_input(
        fmt::format("{}: this zip archive holds no .npy array; an NPZ file of numpy.savez is expected", path));
  if (wanted.empty() && members.size() == 1) return members.front();
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const Member& member : members) names.push_back(member.name);
  if (wanted.empty())
    return bad_input(
        fmt::format("{}: holds {} arrays; choose one of them as member: {}", path, members.size(), some_of(names)));
  const auto name = array_name(wanted).value_or(wanted);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return bad_input(fmt::format("{}: has no array {}; it holds {}", path, in_quotes(name), some_of(names)));
  return members[found - names.begin()];
}

}  // namespace

std::optional<std::string> array_name(const std::string& member) {
  if (!member.ends_with(kSuffix)) return std::nullopt;
  return member.substr(0, member.size() - kSuffix.size());
}

Result<NpzArray> open_npz_array(const ZipArchive& archive, std::size_t index, const std::string& path,
                                const NpyLimits& limits) {
  const std::string member = archive.members()[index];
  const std::string name = fmt::format("{} (array {})", path, in_quotes(array_name(member).value_or(member)));
  auto opened = EIGENVEIL_TRY(archive.open_member(index, name));
  auto header = EIGENVEIL_TRY(read_npy_header(*opened.stream, limits));
  EIGENVEIL_TRY(expect_size(name, header.bytes, header.shape, header.type.size, opened.size));
  return NpzArray{std::move(opened.stream), std::move(header)};
}

Result<Table> open_npz(const Recognised& from, const SourceOptions& options) {
  const auto archive = EIGENVEIL_TRY(ZipArchive::open(*from.file));
  const std::string& path = from.file->path();
  const auto member = EIGENVEIL_TRY(choose(path, arrays_in(archive), options.member));
  auto array = EIGENVEIL_TRY(open_npz_array(archive, member.index, path, {}));
  return npy_stream_table(std::move(array.stream), array.header);
}

}  // namespace eigenveil::data
