// SPDX-License-Identifier: Apache-2.0
#include "zip_archive.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace eigenveil::data {
namespace {

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

class MemberStream final : public ByteStream {
 public:
  MemberStream(std::shared_ptr<zip_t> archive, zip_file_t* member, std::uint64_t size, std::string name)
      : archive_(std::move(archive)), member_(member), size_(size), name_(std::move(name)) {}

  Result<std::size_t> read(char* to, std::size_t size) override {
    const zip_int64_t count = zip_fread(member_.get(), to, size);
    if (count < 0)
      return bad_input(
          fmt::format("{}: the archive is damaged ({}); copy it again", name_, zip_file_strerror(member_.get())));
    done_ += static_cast<std::uint64_t>(count);
    return count;
  }
  double progress() const override {
    return done_ >= size_ ? 1.0 : static_cast<double>(done_) / static_cast<double>(size_);
  }
  const std::string& name() const override { return name_; }

 private:
  std::shared_ptr<zip_t> archive_;
  std::unique_ptr<zip_file_t, CloseMember> member_;  // closed before its archive
  std::uint64_t size_;
  std::uint64_t done_ = 0;
  std::string name_;
};

}  // namespace

ZipArchive::ZipArchive(std::shared_ptr<zip_t> archive, std::string path)
    : archive_(std::move(archive)), path_(std::move(path)) {
  const auto count = static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive_.get(), 0)));
  for (zip_uint64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive_.get(), i, 0);
    members_.emplace_back(name == nullptr ? "" : name);
  }
}

Result<ZipArchive> ZipArchive::open(const File& file) {
  const int descriptor = EIGENVEIL_TRY(file.duplicate());
  int code = 0;
  // CHECKCONS also refuses two members of one name.
  if (zip_t* archive = zip_fdopen(descriptor, ZIP_RDONLY | ZIP_CHECKCONS, &code); archive != nullptr)
    return ZipArchive({archive, zip_discard}, file.path());
  ::close(descriptor);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  Error refusal = bad_input(
      fmt::format("{}: is not an NPZ file, or a truncated one ({}): copy it again, or save it again with numpy.savez",
                  file.path(), zip_error_strerror(&error)));
  zip_error_fini(&error);
  return refusal;
}

Result<ZipArchive::Member> ZipArchive::open_member(std::size_t index, std::string name) const {
  zip_stat_t facts;
  zip_stat_init(&facts);
  zip_file_t* opened = nullptr;
  if (zip_stat_index(archive_.get(), index, 0, &facts) == 0 && (facts.valid & ZIP_STAT_SIZE) != 0)
    opened = zip_fopen_index(archive_.get(), index, 0);
  if (opened == nullptr)
    return bad_input(
        fmt::format("{}: cannot be unpacked ({}); copy the file again", name, zip_strerror(archive_.get())));
  return Member{std::make_unique<MemberStream>(archive_, opened, facts.size, std::move(name)), facts.size};
}

}  // namespace eigenveil::data
