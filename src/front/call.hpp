// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/interrupted.hpp"
#include "eigenveil/base/memory.hpp"
#include "eigenveil/estimators/pca/spiked.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/options.hpp"
#include "eigenveil/front/published.hpp"
#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/gep.hpp"

namespace eigenveil::front {

// From what a caller said to what a job takes. The library's options have the same names wherever it makes sense.

/// "`components` must be a whole number from 1, but is -3"
Result<std::size_t> count(Eigen::Index value, const char* option);
Result<std::optional<std::size_t>> count(std::optional<Eigen::Index> value, const char* option);

Result<PrivacyOptions> privacy_of(const Spending& spending);
std::vector<std::string> range_texts(const std::vector<ColumnRange>& ranges);

template <class Options>
RunOptions run_of(const Options& options, const Spending& spending) {
  return {.threads = options.threads,
          .memory = options.memory > 0 ? options.memory : memory_by_default(),
          .insecure_seed = spending.insecure_seed};
}

template <class Options>
Result<RowOptions> rows_of(const Rows& from, const Options& options) {
  RowOptions rows;
  rows.data = from.path();
  rows.given = from.given();
  if (elsewhere(rows)) return usage_error("the path of the rows is empty");
  if (options.row_bound) rows.row_bound = EIGENVEIL_TRY(RowBound::of(*options.row_bound));
  rows.find_row_bound = options.find_row_bound;
  rows.ranges = range_texts(options.ranges);
  rows.schema = options.schema;
  rows.bounds = options.bounds;
  if (rows.schema && rows.bounds) return usage_error("`schema` is given as a file and as bounds: use one of them");
  rows.center = options.center;
  rows.missing = options.missing;
  rows.source.columns = options.columns;
  rows.source.header = options.header;
  rows.source.delimiter = options.delimiter;
  rows.source.fields = options.fields;
  rows.source.member = options.member;
  rows.person = options.person;
  return rows;
}

/// Nothing is written: what is released goes to the caller.
template <class Options>
Result<FitJob> fit_job(const Rows& rows, const Options& options, const Spending& spending) {
  auto chosen_rows = EIGENVEIL_TRY(rows_of(rows, options));
  auto privacy = EIGENVEIL_TRY(privacy_of(spending));
  return FitJob{.rows = std::move(chosen_rows), .privacy = std::move(privacy), .run = run_of(options, spending)};
}

template <class Options>
Result<GepChoices> gep_of(const Options& options) {
  auto components = EIGENVEIL_TRY(count(options.components.value(), "components"));
  auto sparsity = EIGENVEIL_TRY(count(options.sparsity, "sparsity"));
  auto rounds = EIGENVEIL_TRY(count(options.rounds, "rounds"));
  return GepChoices{.components = std::move(components),
                    .noise = options.noise,
                    .sparsity = std::move(sparsity),
                    .start = options.init,
                    .step = options.step,
                    .rounds = std::move(rounds),
                    .ridge = options.ridge};
}

template <class Options>
Result<SpikedOptions> spiked_of(const Options& options) {
  auto rank = EIGENVEIL_TRY(count(options.rank, "rank"));
  return SpikedOptions{.rank = std::move(rank),
                       .guarantee = options.guarantee,
                       .noise_variance = options.noise_variance,
                       .spike = options.spike};
}

template <class Options>
Result<PublicGuess> guess_of(const Options& options) {
  auto expected_rows = EIGENVEIL_TRY(count(options.expected_rows, "expected_rows"));
  return PublicGuess{
      .spectrum = options.spectrum, .expected_rows = std::move(expected_rows), .signal_share = options.signal_share};
}

/// What the ledger would be charged for a study.
Result<std::vector<Cost>> costs(const Result<Study>& made, std::optional<Eigen::Index> expected);

/// Passes on what a job tells, and knows how much of it was charged when somebody stops it.
class Watch final : public Observer {
 public:
  explicit Watch(Observer* observer) : observer_(observer) {}
  void step(std::string_view name) override;
  void progress(double share) override;
  void concern(std::string_view words) override;
  void remark(std::string_view words) override;
  Error stopped() const;

 private:
  Observer* observer_;
  bool charged_ = false;
  int asked_ = 0;
};

/// Makes a study, releases it, and gives what was released its type.
template <class Kind, class Work>
Result<Kind> publish(Observer* observer, const Work& work) {
  Watch watch(observer);
  try {
    Result<Release> released = work(watch);
    if (!released) return released.error();
    return Kind(std::make_shared<const Model>(std::move(released->model)));
  } catch (const Interrupted&) {
    return watch.stopped();
  }
}

template <class Kind, class Make>
Result<Kind> publish_study(Observer* observer, const Make& make) {
  return publish<Kind>(observer, [&](Observer& hearing) -> Result<Release> {
    const Result<Study> study = make();
    return study ? release(*study, hearing) : study.error();
  });
}

/// Reads a model that must be of that kind.
Result<Model> read_kind(const std::string& path, const std::string& kind);

template <class Kind>
Result<Kind> load(const std::string& path, const std::string& kind) {
  return Kind(std::make_shared<const Model>(EIGENVEIL_TRY(read_kind(path, kind))));
}

}  // namespace eigenveil::front
