// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/federation/chain.hpp"

namespace eigenveil::federation {

/// The open half of an X25519 key.
std::string open_key(const Secret& secret);

/// One of two sites that share a mask: its name and its open key.
struct MaskEnd {
  std::string site;
  std::string open;
};

/// The stream that two sites share, for one ask after another: masks.proof.md. Equal at both only if they were told the
/// same study, the same roster and the same asks, to the byte.
class Mask {
 public:
  /// shared = KDF(X25519(secret, other.open); "pair", hp, hr, lower name, its key, upper name, its key). Names decide
  /// who adds and who subtracts. Keys of low order are refused.
  static Result<Mask> between(const Secret& secret, const MaskEnd& own, const MaskEnd& other,
                              std::string_view proposal_hash, std::string_view roster_hash);
  /// From what was kept.
  Mask(std::string other, const Secret& shared, bool adds) : other_(std::move(other)), shared_(shared), adds_(adds) {}

  /// Adds (or subtracts) ChaCha20(KDF(shared; "mask", head)) to the integers, modulo 2^128; narrow: to their low 64
  /// bits, which are all that counts of them then.
  void apply(std::string_view head, bool narrow, std::vector<Int128>& values) const;
  /// shared := KDF(shared; "next", head): what masked the ask can not be computed any more.
  void advance(std::string_view head) { shared_ = shared_.derive("next", {head}); }

  const std::string& other() const { return other_; }
  const Secret& shared() const { return shared_; }
  bool adds() const { return adds_; }

 private:
  std::string other_;
  Secret shared_;
  bool adds_;
};

}  // namespace eigenveil::federation
