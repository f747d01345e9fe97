// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/masks.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string open_key(const Secret& secret) {
  std::string open(crypto_scalarmult_BYTES, '\0');
  crypto_scalarmult_base(bytes_of(open), secret.data());
  return open;
}

Result<Mask> Mask::between(const Secret& secret, const MaskEnd& own, const MaskEnd& other,
                           std::string_view proposal_hash, std::string_view roster_hash) {
  if (other.open.size() != crypto_scalarmult_BYTES || own.site == other.site || own.open == other.open)
    return bad_input("the mask key of '" + other.site + "' is none, or that of another site");
  std::string shared(crypto_scalarmult_BYTES, '\0');
  if (crypto_scalarmult(bytes_of(shared), secret.data(), bytes_of(other.open)) != 0)
    return bad_input("the mask key of '" + other.site + "' is a point of low order");
  const Secret key = *Secret::of(shared);
  sodium_memzero(shared.data(), shared.size());
  const bool first = own.site < other.site;
  const MaskEnd& lower = first ? own : other;
  const MaskEnd& upper = first ? other : own;
  return Mask(other.site,
              key.derive("pair", {proposal_hash, roster_hash, lower.site, lower.open, upper.site, upper.open}), first);
}

void Mask::apply(std::string_view head, bool narrow, std::vector<Int128>& values) const {
  constexpr std::size_t kAtOnce = 1024;
  const std::size_t each = integer_bytes(narrow);
  const Secret stream_key = shared_.derive("mask", {head});
  const std::string nonce(crypto_stream_chacha20_NONCEBYTES, '\0');  // the key is for this ask alone
  const std::vector<unsigned char> zeros(each * kAtOnce);
  std::string stream(each * kAtOnce, '\0');
  for (std::size_t first = 0; first < values.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, values.size() - first);
    crypto_stream_chacha20_xor_ic(bytes_of(stream), zeros.data(), each * count, bytes_of(nonce), first * each / 64,
                                  stream_key.data());
    for (std::size_t i = 0; i < count; ++i) {
      UInt128 mask = 0;
      std::memcpy(&mask, stream.data() + each * i, each);
      const auto value = static_cast<UInt128>(values[first + i]);
      values[first + i] = static_cast<Int128>(adds_ ? value + mask : value - mask);
    }
  }
  sodium_memzero(stream.data(), stream.size());
}

}  // namespace eigenveil::federation
