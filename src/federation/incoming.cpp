// SPDX-License-Identifier: Apache-2.0
#include "incoming.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

Error cannot_keep() {
  return internal_error(
      fmt::format("an answer cannot be kept in the folder for temporary files: {}", std::strerror(errno)));
}

}  // namespace

IncomingAnswer::IncomingAnswer(std::uint64_t entries, bool narrow)
    : narrow_(narrow), all_(entries * integer_bytes(narrow)) {}

Status IncomingAnswer::take(std::string part) {
  if (part.empty() || part.size() % integer_bytes(narrow_) != 0 || part.size() > all_ - bytes_)
    return bad_input("it sent a part that does not fit");
  const bool first = bytes_ == 0;
  bytes_ += part.size();
  if (first && complete()) {
    only_ = std::move(part);
    return {};
  }
  if (first) file_.reset(std::tmpfile());
  if (!file_ || std::fwrite(part.data(), 1, part.size(), file_.get()) != part.size()) return cannot_keep();
  return {};
}

Status IncomingAnswer::add_to(std::vector<Int128>& total) const {
  if (!complete() || total.size() * integer_bytes(narrow_) != all_) return internal_error("an answer in part");
  if (!file_) {
    add_integers(only_, narrow_, total.data());
    return {};
  }
  if (std::fflush(file_.get()) != 0) return cannot_keep();
  void* const mapped = ::mmap(nullptr, all_, PROT_READ, MAP_PRIVATE, ::fileno(file_.get()), 0);
  if (mapped == MAP_FAILED) return cannot_keep();
  const auto* const bytes = static_cast<const char*>(mapped);
  for (std::uint64_t done = 0; done < all_; done += kPiece)
    add_integers(std::string(bytes + done, std::min<std::uint64_t>(kPiece, all_ - done)), narrow_,
                 total.data() + done / integer_bytes(narrow_));
  ::munmap(mapped, all_);
  return {};
}

}  // namespace eigenveil::federation
