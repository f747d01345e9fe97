// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/regress.hpp"

#include <fmt/format.h>

#include "call.hpp"
#include "eigenveil/front/any_model.hpp"
#include "eigenveil/front/covariance.hpp"
#include "eigenveil/job/regress.hpp"

namespace eigenveil {
namespace {

std::optional<Estimated> estimated_in(const nlohmann::json& object) {
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  const auto value = number("value"), lower = number("lower"), upper = number("upper");
  if (!value) return std::nullopt;
  return Estimated{*value, lower && upper ? std::optional(Interval{*lower, *upper}) : std::nullopt};
}

}  // namespace

Regress::Regress(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      coefficients(array("coefficients").reshaped()),
      intercept(array("intercept")(0, 0)) {
  const nlohmann::json& manifest = this->model().manifest;
  target = manifest.value("target", "");
  for (const auto& one : manifest.value("coefficients", nlohmann::json::array()))
    if (const auto found = estimated_in(one); found && one.contains("name") && one["name"].is_string())
      intervals.push_back({one["name"], *found});
  residual_variance = estimated_in(manifest.value("residual_variance", nlohmann::json()));
  r_squared = estimated_in(manifest.value("r_squared", nlohmann::json()));
}

Result<Regress> Regress::load(const std::string& path) { return front::load<Regress>(path, "regress"); }

Result<Vector> Regress::predict(const Rows& rows) const {
  const Matrix scores = EIGENVEIL_TRY(transform(rows));
  return Vector(scores.reshaped());
}

namespace {

Result<Study> study_of(const Rows& rows, const Regress::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  return study(RegressJob{std::move(fit), options.target.value(), options.ridge});
}

}  // namespace

Result<Regress> regress(const Rows& rows, const Regress::Options& options, const Spending& spending) {
  return front::publish_study<Regress>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> regress_cost(const Rows& rows, const Regress::Options& options, const Spending& spending,
                                       std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

Result<Regress> Covariance::regress(const std::string& target, std::optional<double> ridge) const {
  return Regress(std::make_shared<const Model>(EIGENVEIL_TRY(regress_from(model(), target, ridge))));
}

Result<AnyModel> AnyModel::regress(const std::string& target, std::optional<double> ridge) const {
  return AnyModel(Regress(std::make_shared<const Model>(EIGENVEIL_TRY(regress_from(model(), target, ridge)))));
}

}  // namespace eigenveil
