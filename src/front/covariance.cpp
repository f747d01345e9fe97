// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/covariance.hpp"

#include "call.hpp"
#include "eigenveil/job/covariance.hpp"

namespace eigenveil {

Covariance::Covariance(std::shared_ptr<const Model> model)
    : PublishedComponents(std::move(model)),
      covariance(array("covariance")),
      correlation(array("correlation")),
      noise_variance(0) {
  if (const Matrix variance = array("noise_variance"); variance.size() > 0) noise_variance = variance(0, 0);
}

Result<Covariance> Covariance::load(const std::string& path) { return front::load<Covariance>(path, "covariance"); }

namespace {

Result<Study> study_of(const Rows& rows, const Covariance::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  auto spiked = EIGENVEIL_TRY(front::spiked_of(options));
  auto guess = EIGENVEIL_TRY(front::guess_of(options));
  return study(CovarianceJob{.fit = std::move(fit),
                             .method = options.method,
                             .spiked = std::move(spiked),
                             .dense = options.dense,
                             .guess = std::move(guess),
                             .scale = options.scale});
}

}  // namespace

Result<Covariance> covariance(const Rows& rows, const Covariance::Options& options, const Spending& spending) {
  return front::publish_study<Covariance>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> covariance_cost(const Rows& rows, const Covariance::Options& options,
                                          const Spending& spending, std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

}  // namespace eigenveil
