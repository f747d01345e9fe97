// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// H(tag; fields): BLAKE2b-256 over the tag and every field, each after its length, so that no two lists give the same
/// bytes. 32 bytes.
std::string hash(std::string_view tag, std::initializer_list<std::string_view> fields);

/// 32 bytes that nobody else may see; wiped when they go.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;
  static Secret draw();  ///< from the kernel
  static Result<Secret> of(std::string_view bytes);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  /// KDF(this; tag, fields): the same hash under this key.
  Secret derive(std::string_view tag, std::initializer_list<std::string_view> fields) const;

  const unsigned char* data() const { return bytes_.data(); }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), kBytes}; }
  const std::array<unsigned char, kBytes>& bytes() const { return bytes_; }

 private:
  Secret() = default;
  std::array<unsigned char, kBytes> bytes_{};
};

/// Everything that was said in a study, in one hash: h_0 = H("chain"; hp, hr), h_r = H("chain"; h_{r-1}, q_r).
class Chain {
 public:
  Chain(std::string_view proposal_hash, std::string_view roster_hash)
      : head_(hash("chain", {proposal_hash, roster_hash})) {}

  void add(std::string_view ask) {
    head_ = after(ask);
    ++last_;
  }
  /// h_{last + 1} if this were asked next.
  std::string after(std::string_view ask) const { return hash("chain", {head_, ask}); }
  const std::string& head() const { return head_; }
  std::uint32_t last() const { return last_; }

 private:
  std::string head_;
  std::uint32_t last_ = 0;
};

/// The one way to write a message that is hashed.
std::string canonical_bytes(const google::protobuf::Message& message);

/// Reads bytes that are hashed as they were received. Refuses all but the one way to write what they say: fields in
/// another order, twice, unknown or spelt out where they are absent.
Status read_canonical(std::string_view bytes, google::protobuf::Message& message);

/// Hexadecimal digits, for people and file names.
std::string hex(std::string_view bytes);

}  // namespace eigenveil::federation
