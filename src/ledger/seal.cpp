// SPDX-License-Identifier: Apache-2.0
#include "seal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace eigenveil::ledger {
namespace {

struct Sealed {
  const char* table;
  const char* rows;   // one row, by number
  const char* parts;  // what belongs to it and has no checksum of its own; none: nothing does
};

constexpr std::array<Sealed, 8> kSealed = {{
    {"dataset", "SELECT * FROM dataset WHERE id = ?", nullptr},
    {"reservation", "SELECT * FROM reservation WHERE id = ?",
     "SELECT * FROM event WHERE reservation = ? ORDER BY position"},
    {"work", "SELECT * FROM work WHERE id = ?", "SELECT * FROM pinned WHERE work = ? ORDER BY name"},
    {"file", "SELECT * FROM file WHERE id = ?", nullptr},
    {"frozen", "SELECT * FROM frozen WHERE id = ?", nullptr},
    {"model", "SELECT * FROM model WHERE id = ?", nullptr},
    {"people", "SELECT * FROM people WHERE id = ?", nullptr},
    {"part", "SELECT * FROM part WHERE id = ?", nullptr},
}};

const Sealed& sealed(const std::string& table) {
  return *std::find_if(kSealed.begin(), kSealed.end(), [&](const Sealed& s) { return s.table == table; });
}

// Every column with its name and type: one that a later format adds is covered too.
Result<std::int64_t> add_rows(KeyedHash& hash, const Database& db, const char* sql, std::int64_t id) {
  Statement row(db, sql, id);
  for (std::int64_t rows = 0;; ++rows) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return rows;
    hash.number(static_cast<std::uint64_t>(row.columns()));
    for (int column = 0; column < row.columns(); ++column)
      hash.field(row.name(column)).number(static_cast<std::uint64_t>(row.type(column))).field(row.text(column));
  }
}

// None if the row is not there.
Result<std::optional<Checksum>> checksum_of(const Database& db, const RowName& name) {
  const Sealed& how = sealed(name.first);
  KeyedHash hash(db.key());
  hash.field("row").field(name.first).number(static_cast<std::uint64_t>(name.second));
  const auto own = EIGENVEIL_TRY(add_rows(hash, db, how.rows, name.second));
  if (own != 1) return std::optional<Checksum>();
  std::int64_t parts = 0;
  if (how.parts != nullptr) {
    parts = EIGENVEIL_TRY(add_rows(hash, db, how.parts, name.second));
  }
  return std::optional<Checksum>(hash.number(static_cast<std::uint64_t>(parts)).finish());
}

Result<std::optional<Checksum>> stored_checksum(const Database& db, const RowName& name) {
  Statement row(db, "SELECT checksum FROM seal WHERE name = ? AND row = ?", name.first, name.second);
  const auto found = row.step();
  if (!found) return found.error();
  return *found ? std::optional<Checksum>(from_bytes(row.text(0))) : std::nullopt;
}

Checksum head_checksum(const Database& db, const Head& head) {
  return KeyedHash(db.key())
      .field("head")
      .number(head.mark.generation)
      .field(to_bytes(head.previous))
      .number(static_cast<std::uint64_t>(head.rows))
      .field(to_bytes(head.sum))
      .finish();
}

Error damaged(const Database& db, const std::string& what) {
  return bad_input(
      fmt::format("The ledger '{}' is damaged: {}. Restore it from a backup; until then nothing can be charged to it.",
                  db.path(), what));
}

}  // namespace

Result<Head> read_head(const Database& db) {
  Statement row(db, "SELECT generation, previous, rows, sum, checksum FROM head");
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found) return damaged(db, "its head is gone");
  Head head{{static_cast<std::uint64_t>(row.integer(0)), from_bytes(row.text(4))},
            from_bytes(row.text(1)),
            row.integer(2),
            from_bytes(row.text(3))};
  if (head.mark.generation != 0 && head_checksum(db, head) != head.mark.checksum)
    return damaged(db, "its head does not match its checksum, or its key is that of another ledger");
  return head;
}

Status verify_row(const Database& db, const RowName& name) {
  const auto now = EIGENVEIL_TRY(checksum_of(db, name));
  const auto stored = EIGENVEIL_TRY(stored_checksum(db, name));
  if (now && stored && *now == *stored) return {};
  return damaged(db, fmt::format("{} {} does not match its checksum", name.first, name.second));
}

Result<std::set<RowName>> all_rows(const Database& db) {
  std::set<RowName> names;
  for (const Sealed& how : kSealed) {
    Statement row(db, fmt::format("SELECT id FROM {}", how.table).c_str());
    for (;;) {
      const auto more = EIGENVEIL_TRY(row.step());
      if (!more) break;
      names.emplace(how.table, row.integer(0));
    }
  }
  return names;
}

Status verify_rows(const Database& db, const Head& head) {
  const auto names = EIGENVEIL_TRY(all_rows(db));
  Checksum sum{};
  for (const RowName& name : names) {
    const auto now = EIGENVEIL_TRY(checksum_of(db, name));
    const auto stored = EIGENVEIL_TRY(stored_checksum(db, name));
    if (!now || !stored || *now != *stored)
      return damaged(db, fmt::format("{} {} does not match its checksum", name.first, name.second));
    sodium_add(sum.data(), now->data(), sum.size());
  }
  if (static_cast<std::int64_t>(names.size()) != head.rows || sum != head.sum)
    return damaged(db, fmt::format("of its {} rows, some are missing or are older than the others", head.rows));
  return {};
}

Result<Head> seal_rows(const Database& db, Head head, const std::set<RowName>& rows, std::uint64_t floor) {
  for (const RowName& name : rows) {
    const auto stored = EIGENVEIL_TRY(stored_checksum(db, name));
    const auto now = EIGENVEIL_TRY(checksum_of(db, name));
    if (stored) {
      sodium_sub(head.sum.data(), stored->data(), head.sum.size());
      --head.rows;
    }
    EIGENVEIL_TRY(Statement(db, "DELETE FROM seal WHERE name = ? AND row = ?", name.first, name.second).finish());
    if (!now) continue;
    sodium_add(head.sum.data(), now->data(), head.sum.size());
    ++head.rows;
    const std::string bytes = to_bytes(*now);
    EIGENVEIL_TRY(Statement(db, "INSERT INTO seal VALUES (?, ?, ?)", name.first, name.second, Bytes{bytes}).finish());
  }
  head.previous = head.mark.checksum;
  head.mark.generation = std::max(head.mark.generation, floor) + 1;
  head.mark.checksum = head_checksum(db, head);
  const std::string previous = to_bytes(head.previous), sum = to_bytes(head.sum), own = to_bytes(head.mark.checksum);
  EIGENVEIL_TRY(Statement(db, "UPDATE head SET generation = ?, previous = ?, rows = ?, sum = ?, checksum = ?",
                          static_cast<std::int64_t>(head.mark.generation), Bytes{previous}, head.rows, Bytes{sum},
                          Bytes{own})
                    .finish());
  return head;
}

}  // namespace eigenveil::ledger
