#include "eigenveil/federation/masks.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kKey = 32;

const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

MaskPair MaskPair::draw() {
  MaskPair pair{std::string(kKey, '\0'), std::string(kKey, '\0')};
  randombytes_buf(pair.secret.data(), kKey);
  crypto_scalarmult_base(bytes_of(pair.open), bytes_of(pair.secret));
  return pair;
}

Result<MaskPair> MaskPair::from_secret(const std::string& secret) {
  if (secret.size() != kKey) return bad_input("a mask key must have 32 bytes");
  MaskPair pair{secret, std::string(kKey, '\0')};
  crypto_scalarmult_base(bytes_of(pair.open), bytes_of(pair.secret));
  return pair;
}

std::string key_statement(const std::string& study, const std::string& site, const std::string& open) {
  return "eigenveil mask key, version 1\n" + study + "\n" + site + "\n" + open;
}

Result<Mask> Mask::between(const MaskPair& own, const std::string& own_site, const std::string& open,
                           const std::string& other_site, const std::string& study) {
  if (open.size() != kKey || own_site == other_site) return bad_input("a mask key that is none");
  std::array<unsigned char, kKey> shared{};
  if (crypto_scalarmult(shared.data(), bytes_of(own.secret), bytes_of(open)) != 0)
    return bad_input("the mask key of '" + other_site + "' is a weak point");
  const bool first = own_site < other_site;
  // Both sides hash the same text: keys and names in the order of the names.
  const std::string text = key_statement(study, first ? own_site : other_site, first ? own.open : open) +
                           key_statement(study, first ? other_site : own_site, first ? open : own.open);
  std::array<unsigned char, kKey> key{};
  crypto_generichash(key.data(), key.size(), bytes_of(text), text.size(), shared.data(), shared.size());
  sodium_memzero(shared.data(), shared.size());
  return Mask(key, first);
}

void Mask::apply(std::uint32_t number, bool narrow, std::vector<Int128>& values) const {
  constexpr std::size_t kAtOnce = 1024;
  const std::size_t each = integer_bytes(narrow);
  // Streams of another width are other streams.
  std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  nonce[sizeof number] = narrow ? 1 : 0;
  const std::vector<unsigned char> zeros(each * kAtOnce);
  std::string stream(each * kAtOnce, '\0');
  for (std::size_t first = 0; first < values.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, values.size() - first);
    crypto_stream_chacha20_xor_ic(bytes_of(stream), zeros.data(), each * count, nonce.data(), first * each / 64,
                                  key_.data());
    for (std::size_t i = 0; i < count; ++i) {
      UInt128 mask = 0;
      std::memcpy(&mask, stream.data() + each * i, each);
      const auto value = static_cast<UInt128>(values[first + i]);
      values[first + i] = static_cast<Int128>(adds_ ? value + mask : value - mask);
    }
  }
}

}  // namespace eigenveil::federation
