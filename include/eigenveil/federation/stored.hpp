// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "eigenveil/base/types.hpp"
#include "wire.pb.h"

namespace eigenveil::federation {

/// One ask and its answer on disk.
struct Stored {
  wire::v2::Ask ask;
  wire::v2::Answer answer;
  int file;                         ///< open as long as its log
  std::uint64_t offset;             ///< of the integers
  std::vector<Int128> values = {};  ///< the integers, if somebody still has them
};

/// Makes a folder (0700) and those above it.
Status make_folder(const std::string& path);

/// Asks with their answers, in a file that only grows: at a site what it sent, at the coordinator totals. One process
/// at a time has it open, and lets it go when it ends, however it ends. What a crash cut short at its end is dropped;
/// anything else that is not as it was written is an error.
class AnswerLog {
 public:
  static Result<AnswerLog> open(const std::string& path);
  AnswerLog(AnswerLog&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), starts_(std::move(other.starts_)) {}
  AnswerLog& operator=(AnswerLog&&) = delete;
  ~AnswerLog();

  std::size_t size() const { return starts_.size() - 1; }
  Result<Stored> read(std::size_t index) const;
  /// There for whoever opens the file after a crash of this process; after one of the machine, once `sync` has
  /// returned.
  Result<Stored> append(const wire::v2::Ask& ask, const wire::v2::Answer& answer, const std::vector<Int128>& values);
  Status sync() const;

 private:
  AnswerLog(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status scan();
  std::string path_;
  int file_;
  std::vector<std::uint64_t> starts_ = {0};  // of each record, and of the next
};

/// A message in a file of its own, there completely or not at all; durable before this returns.
Status store(const std::string& path, const google::protobuf::Message& message);
/// Whether there is such a file, which is then in `message`.
Result<bool> load(const std::string& path, google::protobuf::Message& message);

/// The integers, in parts of at most a megabyte, as `append_integers` puts them.
Status for_each_part(const Stored& stored, const std::function<Status(std::string bytes)>& use);

}  // namespace eigenveil::federation
