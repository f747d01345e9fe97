// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/file_uses.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/ledger/ledger.hpp"

namespace eigenveil {
namespace {

using Inode = std::pair<dev_t, ino_t>;

// What a path means: the inode, if there is one; the path without links and dots; and the inodes of all folders above.
struct Place {
  std::optional<Inode> inode;
  std::filesystem::path path;
  std::vector<Inode> folders;
};

std::optional<Inode> inode_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Inode{status.st_dev, status.st_ino};
}

Place place_of(const std::string& path) {
  std::error_code failed;
  Place place{inode_of(path), std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed), {}};
  if (failed) place.path = path;
  for (auto folder = place.path.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (const auto inode = inode_of(folder)) place.folders.push_back(*inode);
    if (folder == folder.parent_path()) break;
  }
  return place;
}

bool same(const Place& a, const Place& b) { return (a.inode && a.inode == b.inode) || a.path == b.path; }

bool inside(const Place& file, const Place& folder) {
  const auto above = [&](const std::filesystem::path& path) {
    const auto [end, unused] = std::mismatch(folder.path.begin(), folder.path.end(), path.begin(), path.end());
    return end == folder.path.end();
  };
  return (folder.inode && std::count(file.folders.begin(), file.folders.end(), *folder.inode) > 0) || above(file.path);
}

Error overwrites(const FileUse& written, const FileUse& other, const char* how) {
  return usage_error(fmt::format("{} {} {} {} ({}). Nothing was read or charged; choose another name.", written.option,
                                 written.path, how, other.option, other.path));
}

}  // namespace

Status check_file_uses(const std::vector<FileUse>& read, const std::vector<FileUse>& written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const Place own = place_of(written[i].path);
    for (const FileUse& use : read) {
      const Place other = place_of(use.path);
      if (same(own, other)) return overwrites(written[i], use, "would overwrite what is named by");
      if (inside(own, other)) return overwrites(written[i], use, "lies in what is named by");
    }
    for (std::size_t j = 0; j < written.size(); ++j) {
      const Place other = place_of(written[j].path);
      if (i != j && (same(own, other) || inside(own, other)))
        return overwrites(written[i], written[j], "would be written over or into");
    }
  }
  return {};
}

std::vector<FileUse> ledger_files(const std::string& ledger) {
  const std::string path = ledger.empty() ? Ledger::default_path() : ledger;
  std::vector<FileUse> files;
  for (const std::string_view part : kLedgerFiles) files.push_back({"the ledger", path + std::string(part)});
  return files;
}

}  // namespace eigenveil
