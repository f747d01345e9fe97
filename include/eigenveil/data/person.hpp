// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Whose row it is: 128 bits made of the id under a key. All zero: the row has no id.
struct PersonId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool missing() const { return high == 0 && low == 0; }
  friend bool operator==(const PersonId&, const PersonId&) = default;
};

/// The column whose text says whose row it is. It is no feature and is never released.
struct PersonColumn {
  using Key = std::array<unsigned char, 16>;
  std::string column;  ///< name or 1-based position
  Key key = {};        ///< secret, drawn for each run: who does not know it finds no two ids that collide
};

/// Of the exact bytes of a field: "1" and "01" are two people. Up to 15 bytes no two texts become one, from 16 on it is
/// their SipHash-2-4.
PersonId person_of(std::string_view text, const PersonColumn::Key& key);

/// The same of a number's decimal digits. Nothing for what is no integer below 2^53: two people could be one double.
Result<PersonId> person_of(double number, const PersonColumn::Key& key);

}  // namespace eigenveil
