// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/bounded_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/data/whose.hpp"

namespace eigenveil {
namespace {

// The first raw column with a NaN or an infinity that no range clamps; `columns` if there is none.
std::size_t first_not_finite(const double* raw, const double* features, const ColumnMap& map) {
  std::size_t feature = 0;
  for (std::size_t column = 0; column < map.raw_columns(); ++column) {
    const auto* categorical = std::get_if<CategoricalColumn>(&map.specs()[column].kind);
    const std::size_t width = categorical != nullptr ? categorical->values.size() : 1;
    if (std::isnan(raw[column])) return column;
    for (std::size_t j = 0; j < width; ++j)
      if (!std::isfinite(features[feature + j])) return column;
    feature += width;
  }
  return map.raw_columns();
}

Error missing_error(const ColumnMap& map, std::size_t row, std::size_t column) {
  return bad_input(fmt::format(
      "row {}, column '{}': the value is missing, NaN or infinite; fill it in, or let `missing` value count it as the "
      "middle of its range, or `missing` zero-row its row as zero",
      row + 1, map.specs()[column].name));
}

// The class of a row, -1 if it has none and counts as zero.
Result<std::int32_t> class_of(double value, const BoundingOptions& options, std::size_t row,
                              const std::string& column) {
  const auto refused = [&](const char* why) {
    return bad_input(fmt::format("row {}, column '{}': {}", row + 1, column, why));
  };
  if (std::isnan(value)) {
    if (options.missing != MissingPolicy::kError) return -1;
    return refused("the class is missing; fill it in, or let `missing` zero-row count such rows as zero");
  }
  // Compared as a double first: to cast one that no integer holds is undefined.
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const double end = options.classes == 0 ? kMost : std::min(kMost, static_cast<double>(options.classes));
  if (value >= 0 && value < end && value == std::floor(value)) return static_cast<std::int32_t>(value);
  if (options.drop_unlisted) return -1;
  return refused("the label is not among the classes; list it, or let `unlisted` drop count such rows as zero");
}

// Something for every number of rows that a person can have; most have few.
template <class T>
class ByCount {
 public:
  T& operator[](std::uint32_t m) { return m < few_.size() ? few_[m] : many_[m]; }
  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::uint32_t m = 0; m < few_.size(); ++m) visit(m, few_[m]);
    for (auto& [m, value] : many_) visit(m, value);
  }

 private:
  std::vector<T> few_ = std::vector<T>(std::size_t{1} << 12);
  std::map<std::uint32_t, T> many_;
};

// Goes through a store of one number per row, from some row on.
class Numbers {
 public:
  Numbers(const ChunkStore& store, std::size_t first) : store_(store), row_(first) {}
  Status next(std::uint32_t& number) {
    if (at_ == end_) {
      const std::size_t chunk = row_ / store_.chunk_rows();
      const std::int32_t* numbers = EIGENVEIL_TRY(store_.read(chunk, buffer_));
      at_ = numbers + row_ % store_.chunk_rows();
      end_ = numbers + store_.rows_in(chunk);
    }
    number = static_cast<std::uint32_t>(*at_++);
    ++row_;
    return {};
  }

 private:
  const ChunkStore& store_;
  std::size_t row_;
  const std::int32_t* at_ = nullptr;
  const std::int32_t* end_ = nullptr;
  std::vector<std::int32_t> buffer_;
};

// Moves a stretch of rows to where those of people with as many rows lie, in their order.
class RowMover {
 public:
  RowMover(std::size_t first, std::size_t last) : first_(first), last_(last) {}

  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }

  // `rows_with`: of each row, how many rows its person has; 0 where it is left out.
  Status count(const ChunkStore& rows_with, ByCount<std::size_t>& all) {
    Numbers numbers(rows_with, first_);
    for (std::size_t row = first_; row < last_; ++row) {
      std::uint32_t m = 0;
      EIGENVEIL_TRY(numbers.next(m));
      if (m != 0) ++places_[m].next;
    }
    places_.for_each([&](std::uint32_t m, const Place& place) {
      if (place.next > 0) all[m] += place.next;
    });
    return {};
  }

  // Says where the rows of people with m rows go from here: `next` on, which is moved behind them. A chunk that others
  // write to as well is there from now on.
  void place(std::uint32_t m, std::size_t& next, ChunkStore& to) {
    Place& place = places_[m];
    if (place.next == 0) return;
    if (!to.spilled()) to.at(next);
    next += std::exchange(place.next, next);
  }

  // Returns where the row lies now. `most`: entries that may wait for a spilled store in one place.
  Result<std::size_t> move(std::uint32_t m, const std::int32_t* from, ChunkStore& store, std::size_t most) {
    const std::size_t d = store.columns();
    Place& place = places_[m];
    const std::size_t to = place.next++;
    if (!store.spilled()) {
      if (to >= place.end) {
        place.to = store.at(to);
        place.end = (to / store.chunk_rows() + 1) * store.chunk_rows();
      }
      place.to = std::copy_n(from, d, place.to);
      return to;
    }
    place.waiting.insert(place.waiting.end(), from, from + d);
    if (place.waiting.size() + d > most) EIGENVEIL_TRY(put_waiting(place, store));
    return to;
  }

  Status finish(ChunkStore& store) {
    Status finished;
    places_.for_each([&](std::uint32_t /*m*/, Place& place) {
      if (finished.ok() && !place.waiting.empty()) finished = put_waiting(place, store);
    });
    return finished;
  }

 private:
  // Where the next row of a person with so many goes.
  struct Place {
    std::size_t next = 0;                    // first their number
    std::size_t end = 0;                     // in memory: of the chunk that `to` is in
    std::int32_t* to = nullptr;              // in memory
    std::vector<std::int32_t> waiting = {};  // rows of a spilled store go to the file in stretches
  };

  static Status put_waiting(Place& place, ChunkStore& store) {
    const std::size_t rows = place.waiting.size() / store.columns();
    EIGENVEIL_TRY(store.put(place.next - rows, place.waiting.data(), rows));
    place.waiting.clear();
    return {};
  }

  std::size_t first_;
  std::size_t last_;
  ByCount<Place> places_;
};

// Each thread moves whole chunks that follow each other, to places of its own. `counts`: how many rows there are of
// people with so many.
Result<std::vector<RowMover>> movers_for(const ChunkStore& store, const ChunkStore& rows_with, int threads,
                                         ByCount<std::size_t>& counts) {
  const std::size_t movers = store.spilled() ? 1 : static_cast<std::size_t>(std::max(1, threads));
  const std::size_t each = (store.chunks() + movers - 1) / movers * store.chunk_rows();
  std::vector<RowMover> result;
  for (std::size_t first = 0; first < store.rows(); first += each)
    result.emplace_back(first, std::min(first + each, store.rows()));
  for (RowMover& mover : result) EIGENVEIL_TRY(mover.count(rows_with, counts));
  return result;
}

// Entries that may wait for a spilled store in one place, of so many: 8 MB in all, but some rows.
std::size_t most_that_wait(std::size_t columns, std::size_t places) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  return std::clamp<std::size_t>(kBytes / std::max<std::size_t>(1, places), 4 * columns,
                                 std::max<std::size_t>(65536, 4 * columns)) /
         4;
}

Status check_people(const RawBatch& batch, const PersonRule& rule) {
  if (batch.people.size() != batch.rows) return internal_error("the rows do not say whose they are");
  if (rule.missing_is_own) return {};
  for (std::size_t i = 0; i < batch.rows; ++i) {
    if (batch.people[i] == kUnreadPerson)
      return bad_input(fmt::format(
          "row {}: the line is malformed, so that nobody knows whose it is; mend it, or let `missing_person` own take "
          "all such lines for those of one person",
          batch.first_row + i + 1));
    if (batch.people[i].missing())
      return bad_input(fmt::format(
          "row {}: the person's id is missing; fill it in, or let `missing_person` own make such a row a person of its "
          "own (whoever has several of them is then several people)",
          batch.first_row + i + 1));
  }
  return {};
}

// One batch on its way from raw values to the lattice; rows are independent, so threads share it out.
struct BatchWork {
  const ColumnMap& map;
  const Lattice& lattice;
  std::size_t raw_width;
  std::vector<std::int32_t> bounded;
  std::vector<RowFate> fates;

  void run(const RawBatch& batch, int threads) {
    const std::size_t d = map.features();
    bounded.resize(batch.rows * d);
    fates.resize(batch.rows);
    constexpr std::size_t kRowsAtOnce = 64;
    Tickets pieces((batch.rows + kRowsAtOnce - 1) / kRowsAtOnce);
    on_threads(threads, [&] {
      std::vector<double> features(d);
      while (const auto piece = pieces.next())
        for (std::size_t i = *piece * kRowsAtOnce; i < std::min((*piece + 1) * kRowsAtOnce, batch.rows); ++i) {
          const double* row = &batch.values[i * raw_width];
          if (!map.is_identity()) {
            map.apply(row, features.data());
            row = features.data();
          }
          fates[i] = bound_row(row, d, lattice, &bounded[i * d]);
        }
    });
  }
};

}  // namespace

Result<BoundedRows> BoundedRows::read(RowSource& source, const ColumnMap& map, const BoundingOptions& options,
                                      const Progress& progress) {
  const std::size_t d = map.features();
  if (d == 0) return bad_input("the data has no columns to work on");
  if (options.bits < 4 || options.bits > 20)
    return usage_error(fmt::format("the lattice takes 4 to 20 bits, but got {}", options.bits));

  const Lattice lattice{options.bound.value(), options.bits};
  // Rows of people are stored twice for a moment; the rest is for their ids and counts.
  const ChunkStore::Options storing{options.person ? options.memory_bytes / 3 : options.memory_bytes,
                                    options.spill_folder, options.chunk_rows};
  BoundedRows result(ChunkStore(d, storing), lattice, options.threads);
  auto ids = std::make_unique<PersonIds>(options.memory_bytes / 3, options.spill_folder);
  BatchWork work{map, lattice, source.columns().size(), {}, {}};
  const std::string class_column = options.class_column ? source.columns()[*options.class_column] : "";
  const std::size_t batch_rows = std::clamp<std::size_t>((std::size_t{6} << 20) / (8 * (d + work.raw_width)), 1, 8192);
  std::vector<double> features(d);
  const auto take = [&](const RawBatch& batch) -> Status {
    if (options.person) {
      EIGENVEIL_TRY(check_people(batch, *options.person));
      EIGENVEIL_TRY(ids->append(batch.people.data(), batch.rows));
    }
    work.run(batch, options.threads);
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const double* raw = &batch.values[i * work.raw_width];
      if (work.fates[i] == RowFate::kNotFinite && options.missing == MissingPolicy::kError) {
        map.apply(raw, features.data());
        return missing_error(map, batch.first_row + i, first_not_finite(raw, features.data(), map));
      }
      result.diagnostics_.shortened += work.fates[i] == RowFate::kShortened ? 1 : 0;
      bool zero = work.fates[i] == RowFate::kNotFinite;
      if (options.class_column) {
        const auto found =
            EIGENVEIL_TRY(class_of(raw[*options.class_column], options, batch.first_row + i, class_column));
        result.classes_.push_back(found);
        zero = zero || found < 0;
      }
      if (!zero) continue;
      result.zeroed_.push_back(result.rows() + i);
      std::fill_n(&work.bounded[i * d], d, 0);
    }
    return result.store_.append(work.bounded.data(), batch.rows);
  };
  // A batch is bounded and stored while the next one is read; what is wrong with the earlier one is said first.
  RawBatch batch, ahead;
  std::string part, part_ahead;
  const auto read_ahead = [&]() -> Status {
    EIGENVEIL_TRY(source.next(ahead, batch_rows));
    part_ahead = source.part();
    return {};
  };
  for (Status read = read_ahead();;) {
    EIGENVEIL_TRY(read);
    if (ahead.rows == 0) break;
    std::swap(batch, ahead);
    std::swap(part, part_ahead);
    auto taken = std::async(std::launch::async, [&] { return take(batch); });
    read = read_ahead();
    if (const Status status = taken.get(); !status)
      return part.empty() ? status.error() : Error{status.error().code, part + ", " + status.error().message};
    if (progress) progress(source.progress());
  }
  result.classed_ = options.class_column.has_value();
  if (options.person) EIGENVEIL_TRY(result.group(std::move(ids), *options.person, storing));
  result.diagnostics_.rows = result.units();
  result.diagnostics_.zeroed = result.zeroed_.size();
  return result;
}

// How many rows the person of each row has, 0 for a row that is left out. Of a person with more than `most_rows` rows
// every set of that many is as likely: a row is kept with probability (still wanted) / (still to come).
Result<ChunkStore> BoundedRows::numbered_counts(const PersonIds& ids, const PersonRule& rule) {
  if (rows() >= (std::size_t{1} << 32)) return bad_input("rows of people are at most 2^32");
  auto people = EIGENVEIL_TRY(ids.count(rule.share != nullptr));
  people_ = people.rows_of.size();
  person_ = std::move(people.person);
  rows_of_ = std::move(people.rows_of);
  std::vector<std::uint32_t> to_come = rows_of_, wanted;
  if (rule.share) {
    auto shared = EIGENVEIL_TRY(rule.share(people.ids, rows_of_));
    people_ = shared.people;
    rows_of_ = std::move(shared.rows_of);
    wanted = std::move(shared.kept);
    if (rows_of_.size() != to_come.size() || wanted.size() != to_come.size())
      return internal_error("the processes do not agree whose rows they hold");
  }
  diagnostics_.one_row_each = std::all_of(rows_of_.begin(), rows_of_.end(), [](std::uint32_t m) { return m == 1; });
  if (rule.most_rows) {
    const auto most = static_cast<std::uint32_t>(*rule.most_rows);
    for (std::uint32_t& m : rows_of_) m = std::min(m, most);
  }
  if (!rule.share) wanted = rows_of_;
  ChunkStore rows_with = ids.counts();
  for (const std::uint32_t p : person_) {
    const bool kept = wanted[p] == to_come[p] || (wanted[p] > 0 && rule.below(to_come[p]) < wanted[p]);
    --to_come[p];
    if (kept) --wanted[p];
    const auto m = static_cast<std::int32_t>(kept ? rows_of_[p] : 0);
    EIGENVEIL_TRY(rows_with.append(&m, 1));
  }
  return rows_with;
}

Status BoundedRows::group(std::unique_ptr<const PersonIds> ids, const PersonRule& rule,
                          const ChunkStore::Options& storing) {
  if (rows() >= (std::size_t{1} << 32)) return bad_input("rows of people are at most 2^32");
  least_rows_ = rule.least_rows;
  lattice_.weight_bits = kPersonBits;
  std::optional<ChunkStore> rows_with;
  if (rule.numbered || rule.most_rows || rule.share) {
    rows_with = EIGENVEIL_TRY(numbered_counts(*ids, rule));
  } else {
    auto counts = EIGENVEIL_TRY(ids->count_rows(threads_));
    people_ = counts.people;
    diagnostics_.one_row_each = counts.one_row_each;
    rows_with = std::move(counts.rows_with);
  }
  if (people_ >= (std::size_t{1} << 31)) return bad_input("there are 2^31 people or more");
  ids.reset();
  return move_rows(*rows_with, storing);
}

Status BoundedRows::move_rows(const ChunkStore& rows_with, const ChunkStore::Options& storing) {
  ByCount<std::size_t> counts;
  auto movers = EIGENVEIL_TRY(movers_for(store_, rows_with, threads_, counts));
  std::size_t kept = 0;
  counts.for_each([&](std::uint32_t m, std::size_t count) {
    if (count > 0) runs_.push_back({kept, person_weight(m, least_rows_)});
    kept += count;
  });
  if (runs_.size() <= 1 && kept == rows()) return {};

  ChunkStore moved(columns(), storing);
  EIGENVEIL_TRY(moved.allot(kept));
  std::size_t next = 0;
  counts.for_each([&](std::uint32_t m, std::size_t count) {
    if (count > 0)
      for (RowMover& mover : movers) mover.place(m, next, moved);
  });
  const std::size_t most = most_that_wait(columns(), runs_.size());
  std::vector<std::int32_t> classes(classes_.empty() ? 0 : kept);
  std::vector<std::uint32_t> person(person_.empty() ? 0 : kept);
  std::vector<std::vector<std::size_t>> zeroed(movers.size());
  const auto move = [&](RowMover& mover, std::vector<std::size_t>& zeroed_here) -> Status {
    Numbers numbers(rows_with, mover.first());
    auto zero = std::lower_bound(zeroed_.begin(), zeroed_.end(), mover.first());
    std::vector<std::int32_t> buffer;
    for (std::size_t row = mover.first(); row < mover.last();) {
      const std::size_t chunk = row / store_.chunk_rows();
      const std::int32_t* from = EIGENVEIL_TRY(store_.read(chunk, buffer));
      for (const std::size_t end = row + store_.rows_in(chunk); row < end; ++row, from += columns()) {
        const bool is_zero = zero != zeroed_.end() && *zero == row;
        if (is_zero) ++zero;
        std::uint32_t m = 0;
        EIGENVEIL_TRY(numbers.next(m));
        if (m == 0) continue;
        const std::size_t to = EIGENVEIL_TRY(mover.move(m, from, moved, most));
        if (!classes.empty()) classes[to] = classes_[row];
        if (!person.empty()) person[to] = person_[row];
        if (is_zero) zeroed_here.push_back(to);
      }
      store_.forget(chunk);
    }
    return mover.finish(moved);
  };
  std::vector<Status> done(movers.size());
  Tickets tickets(movers.size());
  on_threads(moved.spilled() ? 1 : static_cast<int>(movers.size()), [&] {
    while (const auto i = tickets.next()) done[*i] = move(movers[*i], zeroed[*i]);
  });
  for (const Status& status : done) EIGENVEIL_TRY(status);

  store_ = std::move(moved);
  zeroed_.clear();
  for (const auto& part : zeroed) zeroed_.insert(zeroed_.end(), part.begin(), part.end());
  std::sort(zeroed_.begin(), zeroed_.end());
  classes_ = std::move(classes);
  person_ = std::move(person);
  return {};
}

template <class Map>
Status BoundedRows::replace(RowBound radius, const Map& map) {
  const std::size_t d = columns();
  const Lattice after{radius.value(), lattice_.bits, lattice_.weight_bits};
  Status failure;
  std::mutex failing;
  Tickets chunks(store_.chunks());
  on_threads(threads_, [&] {
    std::vector<std::int32_t> buffer;
    std::vector<std::int32_t> moved;
    std::vector<double> features;
    while (const auto chunk = chunks.next()) {
      const auto rows = store_.read(*chunk, buffer);
      Status done = rows ? Status() : Status(rows.error());
      if (rows) {
        const std::size_t count = store_.rows_in(*chunk);
        features.resize(count * d);
        moved.resize(count * d);
        map(*rows, count, features.data());
        for (std::size_t i = 0; i < count; ++i) {
          if (std::binary_search(zeroed_.begin(), zeroed_.end(), *chunk * store_.chunk_rows() + i))
            std::fill_n(&features[i * d], d, 0.0);
          bound_row(&features[i * d], d, after, &moved[i * d]);
        }
        done = store_.write(*chunk, moved.data());
      }
      if (!done) {
        const std::lock_guard lock(failing);
        failure = done;
      }
    }
  });
  if (failure.ok()) lattice_ = after;
  return failure;
}

Status BoundedRows::recenter(const Vector& mean, RowBound radius) {
  const std::size_t d = columns();
  if (static_cast<std::size_t>(mean.size()) != d || !mean.allFinite())
    return internal_error("the mean to subtract does not fit the rows");
  // a - mean, with a = u * unit
  return replace(radius, [=, mean = mean.data(), unit = lattice_.unit()](const std::int32_t* rows, std::size_t count,
                                                                         double* out) {
    for (std::size_t i = 0; i < count; ++i, rows += d, out += d)
      for (std::size_t j = 0; j < d; ++j) out[j] = rows[j] * unit - mean[j];
  });
}

Status BoundedRows::remap(const LinearMap& M, RowBound radius) {
  if (M.rows() != columns() || M.columns() != columns()) return internal_error("the map does not fit the rows");
  // M^T a, with a = u * unit
  return replace(radius, [&, unit = lattice_.unit()](const std::int32_t* rows, std::size_t count, double* out) {
    const std::vector<double> u(rows, rows + count * columns());
    M.product(u.data(), count, out);
    for (std::size_t i = 0; i < u.size(); ++i) out[i] *= M.step() * unit;
  });
}

}  // namespace eigenveil
