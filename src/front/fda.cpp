// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/fda.hpp"

#include "call.hpp"
#include "eigenveil/job/classes.hpp"
#include "eigenveil/release/transform.hpp"

namespace eigenveil {

Fda::Fda(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      scalings(array("scalings")),
      eigenvalues(array("eigenvalues").reshaped()),
      class_means(array("class_means")),
      priors(array("priors").reshaped()),
      classes(this->model().manifest["classes"].get<std::vector<std::string>>()),
      eigenvalues_estimate(numbers("eigenvalues_estimate")),
      eigenvalues_low(numbers("eigenvalues_low")),
      eigenvalues_high(numbers("eigenvalues_high")),
      scalings_deviation(array("scalings_deviation")) {}

Result<Fda> Fda::load(const std::string& path) { return front::load<Fda>(path, "fda"); }

Result<std::vector<std::string>> Fda::predict(const Rows& rows) const {
  return rows.given() ? predictions(model(), *rows.given()) : predictions(model(), rows.path(), SourceOptions{});
}

namespace {

Result<Study> study_of(const Rows& rows, const Fda::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  auto choices = EIGENVEIL_TRY(front::gep_of(options));
  return study(
      FdaJob{std::move(fit), std::move(choices), options.label.value(), options.classes, options.drop_unlisted});
}

}  // namespace

Result<Fda> fda(const Rows& rows, const Fda::Options& options, const Spending& spending) {
  return front::publish_study<Fda>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> fda_cost(const Rows& rows, const Fda::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

}  // namespace eigenveil
