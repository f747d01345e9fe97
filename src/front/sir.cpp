// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/sir.hpp"

#include <fmt/format.h>

#include <cmath>

#include "call.hpp"
#include "eigenveil/job/classes.hpp"

namespace eigenveil {
namespace {

Status check_response_range(const std::optional<NumericColumn>& range) {
  if (!range || (std::isfinite(range->lower) && std::isfinite(range->upper) && range->lower < range->upper)) return {};
  return usage_error(
      fmt::format("response_range {}:{} must be finite, the lower bound below the upper", range->lower, range->upper));
}

}  // namespace

Sir::Sir(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      directions(array("directions")),
      eigenvalues(array("eigenvalues").reshaped()),
      slice_means(array("slice_means")),
      priors(array("priors").reshaped()),
      eigenvalues_estimate(numbers("eigenvalues_estimate")),
      eigenvalues_low(numbers("eigenvalues_low")),
      eigenvalues_high(numbers("eigenvalues_high")),
      directions_deviation(array("directions_deviation")) {}

Result<Sir> Sir::load(const std::string& path) { return front::load<Sir>(path, "sir"); }

namespace {

Result<Study> study_of(const Rows& rows, const Sir::Options& options, const Spending& spending) {
  EIGENVEIL_TRY(check_response_range(options.response_range));
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  auto choices = EIGENVEIL_TRY(front::gep_of(options));
  auto slices = EIGENVEIL_TRY(front::count(options.slices, "slices"));
  return study(SirJob{std::move(fit), std::move(choices), options.response.value(),
                      Slices{options.cuts, std::move(slices), options.private_slices}, options.response_range});
}

}  // namespace

Result<Sir> sir(const Rows& rows, const Sir::Options& options, const Spending& spending) {
  return front::publish_study<Sir>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> sir_cost(const Rows& rows, const Sir::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

}  // namespace eigenveil
