#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <utility>

#include "format.hpp"
#include "npy.hpp"
#include "text.hpp"

namespace eigenveil::data {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

class MemberStream final : public ByteStream {
 public:
  MemberStream(Archive archive, zip_file_t* member, std::uint64_t size, std::string name)
      : archive_(std::move(archive)), member_(member), size_(size), name_(std::move(name)) {}

  Result<std::size_t> read(char* to, std::size_t size) override {
    const zip_int64_t count = zip_fread(member_.get(), to, size);
    if (count < 0)
      return bad_input(
          fmt::format("{}: the archive is damaged ({}); copy it again", name_, zip_file_strerror(member_.get())));
    done_ += static_cast<std::uint64_t>(count);
    return static_cast<std::size_t>(count);
  }
  double progress() const override {
    return done_ >= size_ ? 1.0 : static_cast<double>(done_) / static_cast<double>(size_);
  }
  const std::string& name() const override { return name_; }

 private:
  Archive archive_;
  std::unique_ptr<zip_file_t, CloseMember> member_;  // closed before its archive
  std::uint64_t size_;
  std::uint64_t done_ = 0;
  std::string name_;
};

Result<Archive> open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  if (code == ZIP_ER_NOENT) return bad_input(fmt::format("{}: there is no such file", path));
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  Error refusal =
      bad_input(fmt::format("{}: is not a whole zip archive ({}); it is truncated or damaged: copy it again", path,
                            zip_error_strerror(&error)));
  zip_error_fini(&error);
  return refusal;
}

struct Member {
  std::string name;  ///< without .npy, as NumPy shows it
  zip_uint64_t index = 0;
};

std::vector<Member> arrays_in(zip_t* archive) {
  std::vector<Member> members;
  const auto count = static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive, 0)));
  for (zip_uint64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive, i, 0);
    if (name == nullptr) continue;
    const std::string_view text = name;
    if (text.ends_with(".npy")) members.push_back({std::string(text.substr(0, text.size() - 4)), i});
  }
  return members;
}

Result<Member> choose(const std::string& path, const std::vector<Member>& members, std::string wanted) {
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
  if (wanted.ends_with(".npy")) wanted.resize(wanted.size() - 4);
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end())
    return bad_input(fmt::format("{}: has no array {}; it holds {}", path, in_quotes(wanted), some_of(names)));
  return members[static_cast<std::size_t>(found - names.begin())];
}

}  // namespace

Result<std::vector<std::string>> npz_arrays(const std::string& path) {
  const Result<Archive> archive = open_archive(path);
  if (!archive.ok()) return archive.error();
  std::vector<std::string> names;
  for (Member& member : arrays_in(archive->get())) names.push_back(std::move(member.name));
  return names;
}

Result<NpzArray> open_npz_array(const std::string& path, const std::string& name, std::size_t most_dimensions) {
  Result<Archive> archive = open_archive(path);
  if (!archive.ok()) return archive.error();
  const Result<Member> member = choose(path, arrays_in(archive->get()), name);
  if (!member.ok()) return member.error();

  zip_stat_t info;
  zip_stat_init(&info);
  zip_file_t* opened = nullptr;
  if (zip_stat_index(archive->get(), member->index, 0, &info) == 0 && (info.valid & ZIP_STAT_SIZE) != 0)
    opened = zip_fopen_index(archive->get(), member->index, 0);
  if (opened == nullptr)
    return bad_input(fmt::format("{}: array {} cannot be unpacked ({})", path, in_quotes(member->name),
                                 zip_strerror(archive->get())));
  auto stream = std::make_unique<MemberStream>(std::move(*archive), opened, info.size,
                                               fmt::format("{} (array {})", path, in_quotes(member->name)));
  Result<NpyHeader> header = read_npy_header(*stream, most_dimensions);
  if (!header.ok()) return header.error();
  EIGENVEIL_TRY(expect_size(stream->name(), header->bytes, header->shape, header->type.size, info.size));
  return NpzArray{std::move(stream), *std::move(header)};
}

Result<std::unique_ptr<RowSource>> open_npz(const Recognised& from, const SourceOptions& options) {
  Result<NpzArray> array = open_npz_array(from.file->path(), options.member, 2);
  if (!array.ok()) return array.error();
  return npy_stream_source(std::move(array->stream), array->header, options);
}

}  // namespace eigenveil::data
