// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/people.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/base/types.hpp"

namespace eigenveil {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kAhead = 12;  // ids whose places are fetched before they are looked at

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::uint32_t* memory) const { ::munmap(memory, bytes); }
};

}  // namespace

// People by id, open addressing: at each place the four words of an id, zeros where there is none, and how many rows
// they have. Made seven eighths full by as many people as are expected: 23 bytes per person. In large pages where the
// system has them: who comes next lies anywhere.
class PersonIds::Table {
 public:
  explicit Table(std::size_t expected) : places_(places_for(expected)) {
    void* memory = ::mmap(nullptr, bytes(places_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes(places_), MADV_HUGEPAGE);
    words_ = {static_cast<std::uint32_t*>(memory), Unmap{bytes(places_)}};
  }

  static bool fits(std::size_t expected, std::size_t most_bytes) {
    const std::size_t places = places_for(expected);
    return places == kLeast || (places < kNobody && bytes(places) <= most_bytes);
  }

  std::size_t places() const { return places_; }
  std::size_t people() const { return people_; }

  void prefetch(const PersonId& id) const { __builtin_prefetch(words_.get() + kWords * home(id), 1); }

  // Counts a row of the person at the place that is returned. Nobody: there are more people than were expected.
  std::uint32_t count_row(const PersonId& id) {
    for (std::size_t place = home(id);; place = place + 1 == places_ ? 0 : place + 1) {
      std::uint32_t* words = words_.get() + kWords * place;
      PersonId there;
      std::memcpy(static_cast<void*>(&there), words, sizeof(there));
      if (there.missing()) {
        if (people_ == places_ - places_ / 16) return kNobody;
        ++people_;
        std::memcpy(words, &id, sizeof(id));
      } else if (there != id) {
        continue;
      }
      words[kWords - 1] += words[kWords - 1] == kNobody ? 0 : 1;
      return static_cast<std::uint32_t>(place);
    }
  }

  // How many rows there are of the person at each place. They move to where the ids were, which are gone.
  const std::uint32_t* rows_at() && {
    for (std::size_t place = 0; place < places_; ++place) words_.get()[place] = words_.get()[kWords * (place + 1) - 1];
    return words_.get();
  }

 private:
  static constexpr std::size_t kLeast = 1 << 12;
  static constexpr std::size_t kWords = 5;
  static_assert(sizeof(PersonId) == (kWords - 1) * sizeof(std::uint32_t));

  static std::size_t places_for(std::size_t expected) { return std::max(kLeast, expected / 7 * 8); }
  static std::size_t bytes(std::size_t places) { return places * kWords * sizeof(std::uint32_t); }
  // Where an id is looked for first.
  std::size_t home(const PersonId& id) const {
    const std::uint64_t mixed = id.high * 0x9e3779b97f4a7c15;  // for ids that are no hashes
    return static_cast<std::size_t>(static_cast<UInt128>(mixed) * places_ >> 64);
  }

  std::size_t places_;
  std::size_t people_ = 0;
  std::unique_ptr<std::uint32_t, Unmap> words_;
};

std::uint64_t person_weight(std::uint64_t m, std::size_t least_rows) {
  if (m >= kNobody) return 0;  // as many as a count of rows can tell
  return (std::uint64_t{1} << kPersonBits) / std::max<std::uint64_t>(m, least_rows);
}

// HyperLogLog (Flajolet, Fusy, Gandouet and Meunier 2007): of the hashes that fall to a register the most leading
// zeros.
void PersonIds::Sketch::add(std::uint64_t hash) {
  const std::uint64_t mixed = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;  // for ids that are no hashes
  const auto zeros = static_cast<std::uint8_t>(1 + std::countl_zero(mixed | (kRegisters - 1)));
  std::uint8_t& most = zeros_[mixed & (kRegisters - 1)];
  most = std::max(most, zeros);
}

std::size_t PersonIds::Sketch::about() const {
  double sum = 0;
  double empty = 0;
  for (const std::uint8_t most : zeros_) {
    sum += std::exp2(-most);
    empty += most == 0 ? 1 : 0;
  }
  constexpr auto m = static_cast<double>(kRegisters);
  double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  if (estimate <= 2.5 * m && empty > 0) estimate = m * std::log(m / empty);
  return static_cast<std::size_t>(estimate * (1 + 4 * 1.04 / std::sqrt(m)));  // four standard errors more
}

std::size_t PersonIds::expected(std::size_t parts) const {
  const auto each = static_cast<double>(std::min(seen_.about(), ids_.rows())) / static_cast<double>(parts);
  return static_cast<std::size_t>(each + 4 * std::sqrt(each));
}

PersonIds::PersonIds(std::size_t memory_bytes, const std::string& spill_folder)
    : part_bytes_(memory_bytes / 3), spill_folder_(spill_folder), ids_(4, {part_bytes_, spill_folder, 0}) {}

ChunkStore PersonIds::counts() const { return ChunkStore(1, {part_bytes_, spill_folder_, ids_.chunk_rows()}); }

Status PersonIds::append(const PersonId* ids, std::size_t count) {
  static_assert(sizeof(PersonId) == 4 * sizeof(std::int32_t));
  for (std::size_t i = 0; i < count; ++i)
    if (!ids[i].missing()) seen_.add(ids[i].high);
  words_.resize(4 * count);
  std::memcpy(words_.data(), ids, count * sizeof(PersonId));
  return ids_.append(words_.data(), count);
}

// Calls `row(id, ahead, number)` for the rows of a part, in order: `ahead` is an id that comes later, or none, and the
// number may be changed. False: no further rows. Threads have different parts, and so different numbers.
template <class Row>
Status PersonIds::for_each_row(const Part& part, ChunkStore& numbers, const Row& row) const {
  std::vector<std::int32_t> read_ids, read_numbers, own;
  std::vector<PersonId> ids(ids_.chunk_rows());
  std::vector<std::uint32_t> mine(ids_.chunk_rows());
  for (std::size_t chunk = 0; chunk < ids_.chunks(); ++chunk) {
    const std::size_t count = ids_.rows_in(chunk);
    std::memcpy(static_cast<void*>(ids.data()), EIGENVEIL_TRY(ids_.read(chunk, read_ids)), count * sizeof(PersonId));
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {  // no branch: whose part a row is nobody foresees
      mine[found] = static_cast<std::uint32_t>(i);
      found += (ids[i].low & (part.of - 1)) == part.number ? 1 : 0;
    }
    if (numbers.spilled()) {
      const std::int32_t* read = EIGENVEIL_TRY(numbers.read(chunk, read_numbers));
      own.assign(read, read + count);
    }
    std::int32_t* to = numbers.spilled() ? own.data() : numbers.at(chunk * numbers.chunk_rows());
    for (std::size_t k = 0; k < found; ++k) {
      auto number = static_cast<std::uint32_t>(to[mine[k]]);
      if (!row(ids[mine[k]], k + kAhead < found ? &ids[mine[k + kAhead]] : nullptr, number)) return {};
      to[mine[k]] = static_cast<std::int32_t>(number);
    }
    if (numbers.spilled()) EIGENVEIL_TRY(numbers.write(chunk, own.data()));
  }
  return {};
}

// The people of a part, and of each row `first` and the place of its person, or nobody. Nothing: there is no room.
Result<std::optional<PersonIds::Table>> PersonIds::table_of(const Part& part, ChunkStore& numbers,
                                                            std::uint32_t first) const {
  for (std::size_t people = expected(part.of);; people += people / 2 + 1024) {
    if (!Table::fits(people, part.table_bytes)) return std::optional<Table>();
    Table table(people);
    bool fits = true;
    EIGENVEIL_TRY(for_each_row(part, numbers, [&](const PersonId& id, const PersonId* ahead, std::uint32_t& number) {
      if (ahead != nullptr) table.prefetch(*ahead);
      number = kNobody;
      if (id.missing()) return true;
      const std::uint32_t place = table.count_row(id);
      fits = place != kNobody;
      number = first + place;
      return fits;
    }));
    if (fits) return std::optional(std::move(table));
  }
}

// A row's number is first the place of its person, then how many rows they have.
Result<std::optional<PersonIds::PartCount>> PersonIds::count_part(const Part& part, ChunkStore& rows_with) const {
  auto table = EIGENVEIL_TRY(table_of(part, rows_with, 0));
  if (!table) return std::optional<PartCount>();
  PartCount count{table->people()};
  const std::uint32_t* rows_at = std::move(*table).rows_at();
  EIGENVEIL_TRY(for_each_row(part, rows_with, [&](const PersonId&, const PersonId*, std::uint32_t& number) {
    if (number == kNobody) ++count.people;
    number = number == kNobody ? 1 : rows_at[number];
    count.one_row_each = count.one_row_each && number == 1;
    return true;
  }));
  return std::optional(count);
}

// People get the numbers of their first rows' order, whatever the places were. Rows of nobody are a person's each.
Result<PersonIds::People> PersonIds::numbered(ChunkStore& places, const std::vector<std::uint32_t>& rows_at) const {
  People people;
  people.person.reserve(ids_.rows());
  std::vector<std::uint32_t> numbers(rows_at.size(), kNobody);
  std::vector<std::int32_t> buffer;
  for (std::size_t chunk = 0; chunk < places.chunks(); ++chunk) {
    const std::int32_t* read = EIGENVEIL_TRY(places.read(chunk, buffer));
    for (std::size_t i = 0; i < places.rows_in(chunk); ++i) {
      const auto place = static_cast<std::uint32_t>(read[i]);
      auto nobodys = kNobody;
      std::uint32_t& number = place == kNobody ? nobodys : numbers[place];
      if (number == kNobody) {
        number = static_cast<std::uint32_t>(people.rows_of.size());
        people.rows_of.push_back(place == kNobody ? 1 : rows_at[place]);
      }
      people.person.push_back(number);
    }
    places.forget(chunk);
  }
  return people;
}

Status PersonIds::add_ids(People& people) const {
  people.ids.resize(people.rows_of.size());
  std::vector<std::int32_t> buffer;
  for (std::size_t chunk = 0; chunk < ids_.chunks(); ++chunk) {
    const std::int32_t* words = EIGENVEIL_TRY(ids_.read(chunk, buffer));
    for (std::size_t i = 0; i < ids_.rows_in(chunk); ++i)
      std::memcpy(static_cast<void*>(&people.ids[people.person[chunk * ids_.chunk_rows() + i]]), words + 4 * i,
                  sizeof(PersonId));
  }
  return {};
}

Result<PersonIds::People> PersonIds::count(bool with_ids) const {
  ChunkStore places(1, {std::numeric_limits<std::size_t>::max(), spill_folder_, ids_.chunk_rows()});
  EIGENVEIL_TRY(places.allot(ids_.rows()));
  for (std::size_t parts = 1;; parts *= 2) {
    std::vector<std::uint32_t> rows_at;
    bool fits = true;
    for (std::size_t part = 0; part < parts && fits; ++part) {
      auto table =
          EIGENVEIL_TRY(table_of({part, parts, part_bytes_}, places, static_cast<std::uint32_t>(rows_at.size())));
      fits = table.has_value();
      if (!fits) break;
      const std::size_t size = table->places();
      if (rows_at.size() + size >= kNobody) return bad_input("there are 2^31 people or more");
      const std::uint32_t* rows = std::move(*table).rows_at();
      rows_at.insert(rows_at.end(), rows, rows + size);
    }
    if (!fits) continue;
    People people = EIGENVEIL_TRY(numbered(places, rows_at));
    if (with_ids) EIGENVEIL_TRY(add_ids(people));
    return people;
  }
}

Result<PersonIds::Counts> PersonIds::count_rows(int threads) const {
  Counts all{counts()};
  EIGENVEIL_TRY(all.rows_with.allot(ids_.rows()));
  std::size_t at_once = 1;
  if (!all.rows_with.spilled()) {
    at_once = std::bit_floor(static_cast<std::size_t>(std::max(1, threads)));
    for (std::size_t chunk = 0; chunk < all.rows_with.chunks(); ++chunk)
      all.rows_with.at(chunk * all.rows_with.chunk_rows());  // threads find memory that is there
  }
  for (std::size_t parts = at_once;; parts *= 2) {
    all.people = 0;
    all.one_row_each = true;
    bool fits = true;
    for (std::size_t first = 0; first < parts && fits; first += at_once) {
      std::vector<Result<std::optional<PartCount>>> counted(at_once, std::optional<PartCount>());
      Tickets tickets(at_once);
      on_threads(static_cast<int>(at_once), [&] {
        while (const auto i = tickets.next())
          counted[*i] = count_part({first + *i, parts, part_bytes_ / at_once}, all.rows_with);
      });
      for (const auto& result : counted) {
        const std::optional<PartCount>& count = EIGENVEIL_TRY(result);
        fits = fits && count.has_value();
        if (!fits) break;
        all.people += count->people;
        all.one_row_each = all.one_row_each && count->one_row_each;
      }
    }
    if (fits) return all;
  }
}

}  // namespace eigenveil
