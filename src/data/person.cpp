// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/person.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <cmath>
#include <cstring>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/whose.hpp"
#include "people.hpp"
#include "text.hpp"

namespace eigenveil {

namespace {

constexpr std::size_t kShort = 15;  // bytes of an id that is its own number

bool means_no_id(const PersonId& id) { return id.missing() || id == kUnreadPerson; }

std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const UInt128 product = static_cast<UInt128>(a) * b;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// The bytes and how many there are: no two texts are the same number, nor is any of them one that means no id.
PersonId numbered(std::string_view text) {
  unsigned char bytes[16] = {};
  std::memcpy(bytes, text.data(), text.size());
  bytes[kShort] = static_cast<unsigned char>(text.size() + 1);
  PersonId id;
  std::memcpy(&id.low, bytes, 8);
  std::memcpy(&id.high, bytes + 8, 8);
  return id;
}

// Three Feistel rounds under the key: every number becomes another one, and nobody who writes ids knows which of them
// will lie side by side in a table. One that means no id goes round again, as it cannot have been the first.
PersonId scattered(PersonId id, const PersonColumn::Key& key) {
  std::uint64_t own[2];
  std::memcpy(own, key.data(), sizeof(own));
  do {
    id.high ^= folded_product(id.low ^ own[0], 0x9e3779b97f4a7c15);
    id.low ^= folded_product(id.high ^ own[1], 0xc2b2ae3d27d4eb4f);
    id.high ^= folded_product(id.low ^ own[0], 0xd6e8feb86659fd93);
  } while (means_no_id(id));
  return id;
}

}  // namespace

PersonId person_of(std::string_view text, const PersonColumn::Key& key) {
  static_assert(crypto_shorthash_siphashx24_BYTES == 16 && crypto_shorthash_siphashx24_KEYBYTES == 16);
  if (text.size() <= kShort) return scattered(numbered(text), key);
  unsigned char hash[16];
  crypto_shorthash_siphashx24(hash, reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data());
  PersonId id;
  std::memcpy(&id.high, hash, 8);
  std::memcpy(&id.low, hash + 8, 8);
  if (means_no_id(id)) id.low = 2;
  return id;
}

Result<PersonId> person_of(double number, const PersonColumn::Key& key) {
  if (std::isnan(number)) return PersonId{};
  if (!(std::fabs(number) < 0x1p53) || number != std::trunc(number))
    return bad_input(
        "the id is no integer below 2^53, and such numbers may be rounded, so that two people are one: give smaller "
        "integers, or the ids as text, in a CSV file or a table");
  return person_of(fmt::format("{}", static_cast<long long>(number)), key);
}

PersonId person_of_line(std::string_view line, const PersonColumn::Key& key) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  const bool quoted = line.size() >= 2 && line.front() == '"' && line.back() == '"';
  if (!quoted) return data::is_missing(line) ? PersonId{} : person_of(line, key);
  std::string text;
  for (std::size_t i = 1; i + 1 < line.size(); ++i) {
    text += line[i];
    if (line[i] == '"' && line[i + 1] == '"' && i + 2 < line.size()) ++i;  // one of two
  }
  return data::is_missing(text) ? PersonId{} : person_of(text, key);
}

namespace data {

Result<PersonId> person_of_number(double number, double below, const PersonColumn::Key& key, BadRows bad_rows) {
  auto whole = person_of(number, key);
  if (bad_rows == BadRows::kError) {
    if (!whole || !(std::fabs(number) >= below)) return whole;
    return bad_input(
        fmt::format("the id is no integer below 2^{}, and the numbers of this type are rounded from there on, so that "
                    "two people are one: give the ids as integers, as numbers of 64 bits, or as text",
                    std::ilogb(below)));
  }
  if (whole) return whole;
  // No text of a CSV file has a NUL byte.
  char bytes[8 + sizeof(number)] = "\0number";
  std::memcpy(bytes + 8, &number, sizeof(number));
  return person_of(std::string_view(bytes, sizeof(bytes)), key);
}

Status NumberedPeople::next(RawBatch& batch, std::size_t max_rows) {
  EIGENVEIL_TRY(source().next(batch, max_rows));
  const std::size_t width = names_.size();
  batch.people.resize(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const auto person = person_of_number(batch.values[i * (width + 1) + width], below_, person_.key, bad_rows_);
    if (!person)
      return bad_input(fmt::format("{}: row {}, column '{}': {}", name_, batch.first_row + i + 1, person_.column,
                                   person.error().message));
    batch.people[i] = *person;
    std::memmove(&batch.values[i * width], &batch.values[i * (width + 1)], width * sizeof(double));
  }
  batch.values.resize(batch.rows * width);
  return {};
}

Selection with_person_last(Selection selection) {
  if (!selection.person) return selection;
  selection.positions.push_back(*selection.person);
  selection.names.push_back("person");
  selection.categories.emplace_back();
  return selection;
}

std::unique_ptr<RowSource> taking_person(std::unique_ptr<RowSource> source, const std::optional<PersonColumn>& person,
                                         std::string name, BadRows bad_rows, double below) {
  if (!person) return source;
  return std::make_unique<NumberedPeople>(std::move(source), *person, std::move(name), bad_rows, below);
}

}  // namespace data
}  // namespace eigenveil
