// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/chain.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <sodium.h>

#include <cstring>

namespace eigenveil::federation {
namespace {

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

void absorb(crypto_generichash_state& state, std::string_view field) {
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<unsigned char>(field.size() >> (8 * i));
  crypto_generichash_update(&state, length.data(), length.size());
  crypto_generichash_update(&state, bytes_of(field), field.size());
}

void hash_into(unsigned char* out, std::string_view key, std::string_view tag,
               std::initializer_list<std::string_view> fields) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.empty() ? nullptr : bytes_of(key), key.size(), Secret::kBytes);
  absorb(state, tag);
  for (const std::string_view field : fields) absorb(state, field);
  crypto_generichash_final(&state, out, Secret::kBytes);
  sodium_memzero(&state, sizeof state);
}

// An empty part takes two bytes here and fifty times as many once it is read: they are counted before.
bool few_fields(std::string_view bytes) {
  constexpr int kMostFields = 20'000;  // planned asks, sites
  google::protobuf::io::CodedInputStream in(bytes_of(bytes), static_cast<int>(bytes.size()));
  int fields = 0;
  while (const std::uint32_t tag = in.ReadTag()) {
    if (++fields > kMostFields) return false;
    if (!google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) return true;  // parsing refuses it
  }
  return true;
}

}  // namespace

std::string hash(std::string_view tag, std::initializer_list<std::string_view> fields) {
  std::string result(Secret::kBytes, '\0');
  hash_into(reinterpret_cast<unsigned char*>(result.data()), {}, tag, fields);
  return result;
}

Secret Secret::draw() {
  Secret secret;
  randombytes_buf(secret.bytes_.data(), kBytes);
  return secret;
}

Result<Secret> Secret::of(std::string_view bytes) {
  if (bytes.size() != kBytes) return bad_input("a key must have 32 bytes");
  Secret secret;
  std::memcpy(secret.bytes_.data(), bytes.data(), kBytes);
  return secret;
}

Secret::~Secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

Secret Secret::derive(std::string_view tag, std::initializer_list<std::string_view> fields) const {
  Secret secret;
  hash_into(secret.bytes_.data(), view(), tag, fields);
  return secret;
}

std::string canonical_bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream text(&bytes);
  google::protobuf::io::CodedOutputStream out(&text);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

Status read_canonical(std::string_view bytes, google::protobuf::Message& message) {
  if (!few_fields(bytes)) return bad_input(message.GetTypeName() + ": it has more parts than any study needs");
  const bool read = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (read) message.DiscardUnknownFields();
  if (read && canonical_bytes(message) == bytes) return {};
  return bad_input(message.GetTypeName() + ": the bytes are not what this version of eigenveil would write");
}

std::string hex(std::string_view bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_of(bytes), bytes.size());
  text.pop_back();
  return text;
}

}  // namespace eigenveil::federation
