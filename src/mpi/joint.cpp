// SPDX-License-Identifier: Apache-2.0
#include "joint.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <map>
#include <new>

#include "comm.hpp"
#include "eigenveil/privacy/secure_random.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::mpi {
namespace {

// An exception would leave the other ranks waiting.
template <class Work>
auto attempt(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return internal_error("out of memory; lower `memory`, or use fewer columns");
  } catch (const std::exception& failure) {
    return internal_error(failure.what());
  }
}

Error error_of(const wire::v2::RankReport& report, std::size_t rank) {
  return {static_cast<ErrorCode>(report.code()), fmt::format("rank {}: {}", rank, report.message())};
}

constexpr const char* kAnotherFailed = "a rank failed";

// The first error among the reports; that another rank failed is said only if no other says why.
Status judge(const std::vector<std::string>& reports) {
  std::optional<std::uint64_t> entries;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    wire::v2::RankReport report;
    if (report.ParseFromString(reports[r]) && report.code() != 0 && report.message() != kAnotherFailed)
      return error_of(report, r);
  }
  for (std::size_t r = 0; r < reports.size(); ++r) {
    wire::v2::RankReport report;
    if (!report.ParseFromString(reports[r])) return internal_error(fmt::format("rank {}: an unreadable report", r));
    if (report.code() != 0) return error_of(report, r);
    if (entries.value_or(report.entries()) != report.entries())
      return internal_error(fmt::format("rank {}: sums of another size than those of rank 0", r));
    entries = report.entries();
  }
  return {};
}

// Every rank tells rank 0 its error or none; all ranks leave with the same verdict, so that none waits for another.
Status agree(const Error* error, std::size_t entries) {
  wire::v2::RankReport mine;
  if (error != nullptr) {
    mine.set_code(static_cast<std::uint32_t>(error->code));
    mine.set_message(error->message.substr(0, 10000));
  }
  mine.set_entries(entries);
  const auto reports = gather(mine.SerializeAsString());
  const Status verdict = rank() == 0 ? judge(reports) : Status();
  if (decided(verdict.ok())) return {};
  return rank() == 0 ? verdict : Status(internal_error(kAnotherFailed));
}

template <class T, class Entries>
Status agree(Result<T>& mine, const Entries& entries) {
  return mine ? agree(nullptr, entries(*mine)) : agree(&mine.error(), 0);
}

RowOptions row_options(RowOptions options, const wire::v2::RankRead& message) {
  options.data = message.data();
  options.source.header = message.header() == wire::v2::RankRead::YES  ? HeaderRule::kYes
                          : message.header() == wire::v2::RankRead::NO ? HeaderRule::kNo
                                                                       : HeaderRule::kUnstated;
  options.source.delimiter = static_cast<char>(message.delimiter());
  options.source.fields = message.fields();
  options.source.member = message.member();
  options.source.share = {static_cast<std::size_t>(rank()), static_cast<std::size_t>(ranks()), message.cut_text()};
  return options;
}

RunOptions run_options(const wire::v2::RankRead& message) {
  RunOptions run;
  run.memory = message.memory();
  run.threads = static_cast<int>(message.threads());
  // Every rank draws which of its own rows are kept. The noise is rank 0's alone, and not drawn here.
  if (message.people().has_insecure_seed())
    run.insecure_seed = message.people().insecure_seed() + static_cast<std::uint64_t>(rank());
  return run;
}

std::optional<PublicBasis> basis_from(const wire::v2::RankPairs& message) {
  if (message.directions() == 0) return std::nullopt;
  const Eigen::Index k = message.directions();
  const Eigen::Index d = message.basis_size() / (k + 1);
  const double* values = message.basis().data();
  return PublicBasis{Eigen::Map<const Vector>(values, d), Eigen::Map<const Matrix>(values + d, d, k)};
}

PairReading pairs_from(const wire::v2::RankPairs& message) {
  PairReading reading;
  reading.files = {message.x(),           message.y(),       message.images(),   message.captions(), message.labels(),
                   message.class_names(), message.prompts(), message.x_fields(), message.y_fields(), message.person()};
  reading.encoders.image_encoder = message.image_encoder();
  reading.encoders.text_encoder = message.text_encoder();
  if (message.height() > 0) reading.encoders.image_shape = {message.height(), message.width()};
  if (message.channels() > 0) reading.encoders.channels = message.channels();
  reading.encoders.kept = message.kept();
  reading.encoders.lower = message.lower();
  reading.encoders.upper = message.upper();
  reading.basis = basis_from(message);
  return reading;
}

// A person and how many rows they have here.
struct Counted {
  PersonId id;
  std::uint64_t rows;
};
static_assert(sizeof(Counted) == 24);

template <class T>
std::vector<T> as(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(values.data()), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// What the owner of a hash tells a rank about its person.
struct Told {
  std::uint32_t rows;  // in all
  std::uint32_t kept;  // of those of that rank
};

// What a person has on each of the ranks that asked.
using OnRanks = std::vector<std::pair<std::size_t, std::uint64_t>>;

// How many of a person's rows each rank keeps if of all of them every set of `most` is as likely: rows are drawn one
// after the other, and only where they lie is looked at. Each rank then draws which of its own these are.
OnRanks kept_of(OnRanks left, std::uint64_t most, SecureRandom& random) {
  std::uint64_t all = 0;
  for (const auto& [rank, rows] : left) all += rows;
  if (all <= most) return left;
  OnRanks kept = left;
  for (auto& [rank, rows] : kept) rows = 0;
  for (std::uint64_t i = 0; i < most; ++i, --all) {
    std::uint64_t at = random.below(all);
    std::size_t r = 0;
    for (; at >= left[r].second; ++r) at -= left[r].second;
    --left[r].second;
    ++kept[r].second;
  }
  return kept;
}

// The owner of a hash adds up what all ranks have of its person and tells them; it counts the person, once. A rank owns
// hashes whether it has rows or not, so `most` alone says whether rows are left out.
Result<PersonRule::Shared> share_people(const std::vector<PersonId>& people,
                                        const std::vector<std::uint32_t>& rows_here, std::optional<std::uint64_t> most,
                                        SecureRandom& random) {
  struct Less {
    bool operator()(const PersonId& a, const PersonId& b) const {
      return a.high != b.high ? a.high < b.high : a.low < b.low;
    }
  };
  const std::size_t n = ranks();
  std::vector<std::string> asked(n);
  std::vector<std::vector<std::size_t>> whose(n);
  PersonRule::Shared shared{0, rows_here, rows_here};
  for (std::size_t p = 0; p < people.size(); ++p) {
    if (people[p].missing()) {
      ++shared.people;  // nobody else has such a one
      continue;
    }
    const std::size_t owner = people[p].low % n;
    put(asked[owner], Counted{people[p], rows_here[p]});
    whose[owner].push_back(p);
  }
  const auto questions = exchange(asked);
  struct All {
    std::uint64_t rows = 0;
    OnRanks on = {};
    std::size_t told = 0;  // how many ranks
  };
  std::map<PersonId, All, Less> all;
  for (std::size_t r = 0; r < n; ++r)
    for (const Counted& one : as<Counted>(questions[r])) {
      All& person = all[one.id];
      person.rows += one.rows;
      person.on.emplace_back(r, one.rows);
    }
  if (most)
    for (auto& [id, person] : all) person.on = kept_of(std::move(person.on), *most, random);
  shared.people += all.size();
  std::vector<std::string> answers(n);
  for (std::size_t r = 0; r < n; ++r)
    for (const Counted& one : as<Counted>(questions[r])) {
      All& person = all[one.id];
      put(answers[r], Told{static_cast<std::uint32_t>(std::min<std::uint64_t>(person.rows, UINT32_MAX)),
                           static_cast<std::uint32_t>(person.on[person.told++].second)});
    }
  const auto told = exchange(answers);
  for (std::size_t r = 0; r < n; ++r) {
    const auto answered = as<Told>(told[r]);
    if (answered.size() != whose[r].size()) return internal_error("a rank told of other people than it was asked for");
    for (std::size_t i = 0; i < answered.size(); ++i) {
      shared.rows_of[whose[r][i]] = answered[i].rows;
      shared.kept[whose[r][i]] = answered[i].kept;
    }
  }
  return shared;
}

// Every rank gets here, or says that it did not: none waits for one that failed.
void add_people(RowOptions& options, const wire::v2::RankPeople& message, bool& shared) {
  if (message.column().empty()) return;
  options.person = PersonOptions{message.column(), message.least_rows(), {}, message.missing_is_own()};
  if (message.most_rows() > 0) options.person->most_rows = message.most_rows();
  PeopleElsewhere elsewhere{};
  std::memcpy(elsewhere.key.data(), message.key().data(), std::min(elsewhere.key.size(), message.key().size()));
  // Not the stream of the noise, nor those that ranks draw from.
  const auto random = std::make_shared<SecureRandom>(
      message.has_insecure_seed() ? SecureRandom::insecure(~message.insecure_seed()) : SecureRandom::from_kernel());
  elsewhere.share = [&shared, most = options.person->most_rows, random](
                        const std::vector<PersonId>& people,
                        const std::vector<std::uint32_t>& rows_here) -> Result<PersonRule::Shared> {
    shared = true;
    if (!everywhere(true)) return internal_error(kAnotherFailed);
    return share_people(people, rows_here, most, *random);
  };
  options.people_elsewhere = std::make_shared<const PeopleElsewhere>(std::move(elsewhere));
}

// The rows of this rank, if all have theirs.
Result<OwnShare> joint_rows(Result<BoundedRows> rows) {
  EIGENVEIL_TRY(agree(rows, [](const BoundedRows& own) { return own.columns(); }));
  const BoundingDiagnostics& own = rows->diagnostics();
  std::int64_t sums[4] = {static_cast<std::int64_t>(own.rows), static_cast<std::int64_t>(own.shortened),
                          static_cast<std::int64_t>(own.zeroed), own.one_row_each ? 0 : 1};
  add_to_rank_0(sums, 4);
  return OwnShare{*std::move(rows),
                  {static_cast<std::size_t>(sums[0]), static_cast<std::size_t>(sums[1]),
                   static_cast<std::size_t>(sums[2]), sums[3] == 0}};
}

}  // namespace

Result<OwnShare> joint_read(const wire::v2::RankRead& message, Observer& observer) {
  bool shared = !message.has_people();
  auto rows = attempt([&]() -> Result<BoundedRows> {
    RowOptions options;
    if (message.has_pairs()) {
      options.pairs = pairs_from(message.pairs());
      options.missing = message.pairs().zero_missing() ? MissingPolicy::kZeroRow : MissingPolicy::kError;
    } else {
      options = EIGENVEIL_TRY(from_wire(message.rows()));
    }
    add_people(options, message.people(), shared);
    return bound_rows(row_options(std::move(options), message), run_options(message), message.reserved(), observer);
  });
  if (!shared) everywhere(false);
  return joint_rows(std::move(rows));
}

Result<PrivateSum> joint_sum(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  auto sum = attempt([&] { return exact_sum(query, rows, adjacency); });
  EIGENVEIL_TRY(agree(sum, [](const PrivateSum& own) { return own.values.size(); }));
  add_to_rank_0(sum->values.data(), sum->values.size());
  return sum;
}

Result<PrivateCounts> joint_counts(const NormExceedance& query, const BoundedRows& rows) {
  auto counts = attempt([&] { return exact_counts(query, rows); });
  EIGENVEIL_TRY(agree(counts, [](const PrivateCounts& own) { return own.values.size(); }));
  add_to_rank_0(counts->values.data(), counts->values.size());
  return counts;
}

Result<FilteredCells> joint_cells(const FilteredApply& query, const BoundedRows& rows) {
  auto cells = attempt([&] { return FilteredCells::sweep(query, rows); });
  EIGENVEIL_TRY(agree(cells, [](FilteredCells& own) { return own.sums().size(); }));
  add_to_rank_0(cells->counts().data(), cells->counts().size());
  add_to_rank_0(cells->sums().data(), cells->sums().size());
  return cells;
}

Status joint_recenter(const Recentring& to, BoundedRows& rows) {
  const Status done = attempt([&] { return recenter(rows, to); });
  return agree(done ? nullptr : &done.error(), 0);
}

Status joint_failure(const Error& error) { return agree(&error, 0); }

}  // namespace eigenveil::mpi
