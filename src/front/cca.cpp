// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/cca.hpp"

#include "call.hpp"
#include "eigenveil/job/cca.hpp"

namespace eigenveil {

Cca::Cca(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      x_weights(array("x_weights")),
      y_weights(array("y_weights")),
      correlations(array("correlations").reshaped()),
      correlations_estimate(numbers("correlations_estimate")),
      correlations_low(numbers("correlations_low")),
      correlations_high(numbers("correlations_high")),
      x_weights_deviation(array("x_weights_deviation")),
      y_weights_deviation(array("y_weights_deviation")) {}

Result<Cca> Cca::load(const std::string& path) { return front::load<Cca>(path, "cca"); }

namespace {

Result<Study> study_of(const Rows& rows, const Cca::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  auto choices = EIGENVEIL_TRY(front::gep_of(options));
  return study(CcaJob{std::move(fit), std::move(choices), options.x_columns.value(), options.y_columns.value()});
}

}  // namespace

Result<Cca> cca(const Rows& rows, const Cca::Options& options, const Spending& spending) {
  return front::publish_study<Cca>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> cca_cost(const Rows& rows, const Cca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

}  // namespace eigenveil
