// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zip.h>

#include <vector>

#include "stream.hpp"

namespace eigenveil::data {

/// A zip file that is open for reading, one member after the other.
class ZipArchive {
 public:
  /// Refuses what is no whole archive, and one with two members of one name.
  static Result<ZipArchive> open(const File& file);

  /// The members in order, by their full names; one whose name cannot be read has none.
  const std::vector<std::string>& members() const { return members_; }

  struct Member {
    std::unique_ptr<ByteStream> stream;
    std::uint64_t size = 0;  ///< that the archive announces
  };
  /// `name` is what messages call it. The member keeps the archive open.
  Result<Member> open_member(std::size_t index, std::string name) const;

 private:
  ZipArchive(std::shared_ptr<zip_t> archive, std::string path);

  std::shared_ptr<zip_t> archive_;
  std::string path_;
  std::vector<std::string> members_;
};

}  // namespace eigenveil::data
