#pragma once

#include <array>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"

namespace eigenveil::federation {

/// An X25519 key pair of one site for one study.
struct MaskPair {
  std::string secret;  ///< 32 bytes
  std::string open;    ///< 32 bytes

  static MaskPair draw();
  static Result<MaskPair> from_secret(const std::string& secret);
};

/// The bytes that a site signs, so that a key counts for one study and one site only.
std::string key_statement(const std::string& study, const std::string& site, const std::string& open);

/// The stream that two sites share: masks_with(i, j) == masks_with(j, i). masks.proof.md.
class Mask {
 public:
  /// `open` is the other site's key. Names decide who adds and who subtracts.
  static Result<Mask> between(const MaskPair& own, const std::string& own_site, const std::string& open,
                              const std::string& other_site, const std::string& study);

  /// Adds (or subtracts) the stream of ask `number` to the integers, modulo 2^128; narrow: to their low 64 bits, which
  /// are all that counts of them then.
  void apply(std::uint32_t number, bool narrow, std::vector<Int128>& values) const;

 private:
  Mask(const std::array<unsigned char, 32>& key, bool adds) : key_(key), adds_(adds) {}
  std::array<unsigned char, 32> key_;
  bool adds_;
};

}  // namespace eigenveil::federation
