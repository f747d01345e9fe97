// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/pca.hpp"

#include "call.hpp"
#include "eigenveil/job/pca.hpp"

namespace eigenveil {

Result<Pca> Pca::load(const std::string& path) { return front::load<Pca>(path, "pca"); }

namespace {

Result<Study> study_of(const Rows& rows, const Pca::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  auto components = EIGENVEIL_TRY(front::count(options.components.value(), "components"));
  auto sparsity = EIGENVEIL_TRY(front::count(options.sparsity, "sparsity"));
  auto spiked = EIGENVEIL_TRY(front::spiked_of(options));
  auto guess = EIGENVEIL_TRY(front::guess_of(options));
  PcaJob job{.fit = std::move(fit),
             .components = std::move(components),
             .method = options.method,
             .sparsity = std::move(sparsity),
             .scale = options.scale,
             .spiked = std::move(spiked),
             .guess = std::move(guess)};
  const auto rounds = EIGENVEIL_TRY(front::count(options.rounds, "rounds"));
  job.power.rounds = rounds.value_or(job.power.rounds);
  job.power.filter = options.filter;
  job.power.grid_ratio = options.grid_ratio;
  if (!options.start.empty()) job.start = EIGENVEIL_TRY(read_start(options.start, options.person.has_value()));
  job.choose_rounds = !rounds && !options.method;
  if (!job.spiked.rank) job.spiked.rank = job.components;
  job.score_plot = options.score_plot;
  if (!options.label.empty())
    job.fit.rows.class_column = ClassColumn{options.label, options.classes, options.drop_unlisted, {}};
  return study(std::move(job));
}

}  // namespace

Result<Pca> pca(const Rows& rows, const Pca::Options& options, const Spending& spending) {
  return front::publish_study<Pca>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> pca_cost(const Rows& rows, const Pca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

}  // namespace eigenveil
