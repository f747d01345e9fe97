// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/data/person.hpp"
#include "eigenveil/rows/chunk_store.hpp"

namespace eigenveil {

/// How the rows of one person share the weight of one: people.proof.md. Public.
struct PersonRule {
  std::size_t least_rows = 1;  ///< M of w = 1 / max(M, m) for a person of m rows; 1: all people count alike
  std::optional<std::size_t> most_rows = {};  ///< so many of a person's rows are kept, by chance
  bool missing_is_own = false;                ///< a row without an id is a person of its own; false: it is refused
  bool numbered = true;  ///< rows tell whose they are, for batches: 4 bytes a row in memory. False: sums need it not
  /// Uniform on 0, ..., n - 1, from a secret stream: for `most_rows`.
  std::function<std::uint64_t(std::uint64_t)> below = {};
  /// What all processes that hold rows of the same people have of them together.
  struct Shared {
    std::size_t people = 0;              ///< that this process is to count, so that all together count each once
    std::vector<std::uint32_t> rows_of;  ///< of each person here: how many rows they have in all
    std::vector<std::uint32_t> kept;     ///< of these, how many of those that lie here stay
  };
  /// Where others hold rows of the same people: told how many each has here.
  std::function<Result<Shared>(const std::vector<PersonId>& people, const std::vector<std::uint32_t>& rows_here)>
      share = {};

  bool total_private() const { return least_rows > 1; }
};

/// Rows of people count in 2^-32: what a row of a person who has m of them weighs, rounded down.
inline constexpr int kPersonBits = 32;
std::uint64_t person_weight(std::uint64_t m, std::size_t least_rows);

/// Counts of rows go on in 2^-20 of a person: of a weight in 2^-32 what is left of it, rounded down.
inline constexpr int kCountBits = 20;
inline std::uint64_t count_weight(std::uint64_t weight) { return weight >> (kPersonBits - kCountBits); }

/// Whose rows they are, told from ids that come in with the rows, and are counted once all are in.
class PersonIds {
 public:
  /// `memory_bytes`: a third each for ids and for counts of rows, which go to unnamed files beyond it, and for 24 bytes
  /// a person.
  PersonIds(std::size_t memory_bytes, const std::string& spill_folder);

  Status append(const PersonId* ids, std::size_t count);

  struct People {
    std::vector<std::uint32_t> person;   ///< of each row; people are numbered in the order of their first rows
    std::vector<std::uint32_t> rows_of;  ///< how many rows a person has
    std::vector<PersonId> ids;           ///< of the people, if asked for; none for a row without an id
  };
  /// Counts people in as many parts as memory asks for: the result is the same.
  Result<People> count(bool with_ids = false) const;

  struct Counts {
    ChunkStore rows_with;  ///< of each row: how many rows its person has
    std::size_t people = 0;
    bool one_row_each = true;
  };
  /// The same without numbers of people, of which memory would hold one a row. Threads share the parts.
  Result<Counts> count_rows(int threads = 1) const;

  /// For counts of rows as `count_rows` has them.
  ChunkStore counts() const;

 private:
  Status add_ids(People& people) const;
  Result<People> numbered(ChunkStore& places, const std::vector<std::uint32_t>& rows_at) const;
  /// What the rows of a part add up to; nothing: the part has more people than there is room for.
  struct PartCount {
    std::size_t people = 0;
    bool one_row_each = true;
  };
  struct Part {
    std::size_t number;
    std::size_t of;           ///< a power of two
    std::size_t table_bytes;  ///< that its people may take
  };
  class Table;
  Result<std::optional<Table>> table_of(const Part& part, ChunkStore& numbers, std::uint32_t first) const;
  Result<std::optional<PartCount>> count_part(const Part& part, ChunkStore& rows_with) const;
  template <class Row>
  Status for_each_row(const Part& part, ChunkStore& numbers, const Row& row) const;
  /// How many people there are, about: how large a table for them has to be.
  class Sketch {
   public:
    void add(std::uint64_t hash);
    std::size_t about() const;

   private:
    static constexpr std::size_t kRegisters = 1 << 14;
    std::vector<std::uint8_t> zeros_ = std::vector<std::uint8_t>(kRegisters);
  };
  /// The people of one of so many parts: more are rare.
  std::size_t expected(std::size_t parts) const;

  std::size_t part_bytes_;
  std::string spill_folder_;
  Sketch seen_;
  ChunkStore ids_;
  std::vector<std::int32_t> words_;  // ids on their way to the store
};

}  // namespace eigenveil
