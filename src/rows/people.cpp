// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/people.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/base/types.hpp"

namespace eigenveil {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kAhead = 12;  // ids whose places are fetched before they are looked at

struct Slot {
  PersonId id;
  std::uint32_t person;
  std::uint32_t rows;
};
static_assert(sizeof(Slot) == 24);

// Places that are empty at first, in large pages where the system has them: who comes next lies anywhere among them.
class Slots {
 public:
  explicit Slots(std::size_t size) : size_(size) {
    void* memory = ::mmap(nullptr, bytes(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes(size), MADV_HUGEPAGE);
    slots_ = static_cast<Slot*>(memory);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() { ::munmap(slots_, bytes(size_)); }
  void swap(Slots& other) {
    std::swap(size_, other.size_);
    std::swap(slots_, other.slots_);
  }

  std::size_t size() const { return size_; }
  static std::size_t bytes(std::size_t size) { return size * sizeof(Slot); }
  const Slot* begin() const { return slots_; }
  const Slot* end() const { return slots_ + size_; }

  // Where an id is looked for first: in the order of a hash, whatever the size.
  Slot* home(const PersonId& id) const {
    const std::uint64_t mixed = id.high * 0x9e3779b97f4a7c15;  // for ids that are no hashes
    return slots_ + static_cast<std::size_t>(static_cast<UInt128>(mixed) * size_ >> 64);
  }
  // The place of an id, or the empty one where it would be.
  Slot* place(const PersonId& id) const {
    Slot* slot = home(id);
    while (!slot->id.missing() && slot->id != id)
      if (++slot == end()) slot = slots_;
    return slot;
  }

  // Puts every slot into `to` and gives its memory back: both are passed from begin to end, so that never more than one
  // of them is there.
  void move_to(const Slots& to) const {
    constexpr std::size_t kAtOnce = std::size_t{4} << 20;
    auto* from = reinterpret_cast<unsigned char*>(slots_);
    std::size_t given_back = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!slots_[i].id.missing()) *to.place(slots_[i].id) = slots_[i];
      if (bytes(i + 1) >= given_back + kAtOnce) {
        ::madvise(from + given_back, kAtOnce, MADV_DONTNEED);
        given_back += kAtOnce;
      }
    }
  }

 private:
  std::size_t size_;
  Slot* slots_;
};

// People by hash, open addressing. Made nine tenths full by as many people as are expected, so that 24 bytes per person
// are 27.
class PersonTable {
 public:
  PersonTable(std::size_t expected, std::size_t most_bytes)
      : most_bytes_(most_bytes), slots_(std::max<std::size_t>(kLeast, expected / 9 * 10)) {}

  static bool fits(std::size_t expected, std::size_t most_bytes) {
    return expected / 9 * 10 <= kLeast || Slots::bytes(expected / 9 * 10) <= most_bytes;
  }

  void prefetch(const PersonId& id) { __builtin_prefetch(slots_.home(id), 1); }

  // The person's slot, made if it is new; none if there is no room for it.
  Slot* find(const PersonId& id, std::uint32_t next) {
    Slot* slot = slots_.place(id);
    if (!slot->id.missing()) return slot;
    if (16 * (used_ + 1) > 15 * slots_.size()) {  // more than were expected
      if (!grow()) return nullptr;
      slot = slots_.place(id);
    }
    ++used_;
    *slot = {id, next, 0};
    return slot;
  }

  const Slots& slots() const { return slots_; }

 private:
  bool grow() {
    const std::size_t size = slots_.size() + slots_.size() / 8;
    if (Slots::bytes(size) > most_bytes_) return false;
    Slots larger(size);
    slots_.move_to(larger);
    slots_.swap(larger);
    return true;
  }

  static constexpr std::size_t kLeast = 1 << 12;
  std::size_t most_bytes_;
  std::size_t used_ = 0;
  Slots slots_;
};

// Whatever the parts gave them, people get the numbers of their first rows' order.
void number_by_first_row(PersonIds::People& people) {
  std::vector<std::uint32_t> number(people.rows_of.size(), kNobody);
  std::vector<std::uint32_t> rows_of;
  rows_of.reserve(people.rows_of.size());
  std::vector<PersonId> ids;
  for (std::uint32_t& person : people.person) {
    if (number[person] == kNobody) {
      number[person] = static_cast<std::uint32_t>(rows_of.size());
      rows_of.push_back(people.rows_of[person]);
      if (!people.ids.empty()) ids.push_back(people.ids[person]);
    }
    person = number[person];
  }
  people.rows_of.swap(rows_of);
  people.ids.swap(ids);
}

}  // namespace

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

// False: the part has more people than there is room for.
Result<bool> PersonIds::count_part(std::size_t part, std::size_t parts, People& people) const {
  if (!PersonTable::fits(expected(parts), part_bytes_)) return false;
  PersonTable table(expected(parts), part_bytes_);
  auto next = static_cast<std::uint32_t>(people.rows_of.size());
  std::vector<std::int32_t> buffer;
  std::vector<PersonId> ids(ids_.chunk_rows());
  for (std::size_t chunk = 0; chunk < ids_.chunks(); ++chunk) {
    const std::size_t count = ids_.rows_in(chunk);
    std::memcpy(static_cast<void*>(ids.data()), EIGENVEIL_TRY(ids_.read(chunk, buffer)), count * sizeof(PersonId));
    std::uint32_t* person = &people.person[chunk * ids_.chunk_rows()];
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) table.prefetch(ids[i + kAhead]);
      if ((ids[i].low & (parts - 1)) != part) continue;
      if (next == kNobody - 1) return bad_input("there are 2^32 people or more");
      if (ids[i].missing()) {
        person[i] = next++;
        people.rows_of.push_back(1);
        continue;
      }
      Slot* slot = table.find(ids[i], next);
      if (slot == nullptr) return false;
      if (slot->person == next) {
        ++next;
        people.rows_of.push_back(0);
      }
      slot->rows += slot->rows == kNobody ? 0 : 1;
      person[i] = slot->person;
    }
  }
  for (const Slot& slot : table.slots())
    if (!slot.id.missing()) people.rows_of[slot.person] = slot.rows;
  return true;
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

// A row's number is first that of its person within the part, then how many rows they have: 4 bytes a person stay when
// the table is gone.
Result<std::optional<PersonIds::PartCount>> PersonIds::count_part(const Part& part, ChunkStore& rows_with) const {
  if (!PersonTable::fits(expected(part.of), part.table_bytes)) return std::optional<PartCount>();
  std::vector<std::uint32_t> rows_of;
  {
    PersonTable table(expected(part.of), part.table_bytes);
    std::uint32_t next = 0;
    bool fits = true;
    EIGENVEIL_TRY(for_each_row(part, rows_with, [&](const PersonId& id, const PersonId* ahead, auto& number) {
      if (ahead != nullptr) table.prefetch(*ahead);
      if (id.missing()) return true;
      Slot* slot = table.find(id, next);
      fits = slot != nullptr;
      if (!fits) return false;
      if (slot->person == next) ++next;
      slot->rows += slot->rows == kNobody ? 0 : 1;
      number = slot->person;
      return true;
    }));
    if (!fits) return std::optional<PartCount>();
    rows_of.resize(next);
    for (const Slot& slot : table.slots())
      if (!slot.id.missing()) rows_of[slot.person] = slot.rows;
  }
  PartCount count{rows_of.size()};
  EIGENVEIL_TRY(for_each_row(part, rows_with, [&](const PersonId& id, const PersonId*, auto& number) {
    if (id.missing()) ++count.people;
    number = id.missing() ? 1 : rows_of[number];
    count.one_row_each = count.one_row_each && number == 1;
    return true;
  }));
  return std::optional(count);
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
  for (std::size_t parts = 1;; parts *= 2) {
    People people;
    people.person.resize(ids_.rows());
    bool fits = true;
    for (std::size_t part = 0; part < parts && fits; ++part) fits = EIGENVEIL_TRY(count_part(part, parts, people));
    if (!fits) continue;
    if (with_ids) EIGENVEIL_TRY(add_ids(people));
    if (parts > 1) number_by_first_row(people);
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
