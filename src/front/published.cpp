// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "call.hpp"
#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/release/report.hpp"
#include "eigenveil/release/transform.hpp"

namespace eigenveil {
namespace {

std::optional<double> rows_in(const nlohmann::json& manifest) {
  for (const char* key : {"rows", "noisy_rows", "people", "noisy_people"})
    if (const auto found = manifest.find(key); found != manifest.end() && found->is_number())
      return found->get<double>();
  return {};
}

// Of the largest answer. A file may say anything: what is no such list is passed over.
double deviation_in(const nlohmann::json& manifest) {
  double most = 0, deviation = std::numeric_limits<double>::quiet_NaN();
  const auto noise = manifest.find("noise");
  if (noise == manifest.end() || !noise->is_array()) return deviation;
  for (const auto& answer : *noise) {
    if (!answer.is_object() || !answer.contains("entries") || !answer.contains("deviation")) continue;
    const auto &entries = answer["entries"], &value = answer["deviation"];
    if (!entries.is_number() || !value.is_number() || entries.get<double>() < most) continue;
    most = entries.get<double>();
    deviation = value.get<double>();
  }
  return deviation;
}

}  // namespace

Published::Published(std::shared_ptr<const Model> model, bool per_row)
    : rows(rows_in(model->manifest)),
      deviation(deviation_in(model->manifest)),
      is_private(eigenveil::is_private(*model)),
      manifest(model->manifest.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)),
      model_(std::move(model)) {
  if (per_row && rows) deviation /= *rows;
  if (const auto said = model_->manifest.find("warnings"); said != model_->manifest.end())
    for (const auto& warning : *said) warnings.push_back(warning.get<std::string>());
}

Matrix Published::array(const char* name) const {
  const Matrix* found = model_->array(name);
  return found != nullptr ? *found : Matrix();
}

Status Published::save(const std::string& path) const { return write_model(*model_, path); }

Status Published::report(const std::string& path, std::optional<ImageShape> image_shape) const {
  ReportOptions options;
  if (image_shape) {
    const Matrix* mean = model_->array("mean");
    const std::size_t pixels = image_shape->height * image_shape->width;
    if (mean == nullptr || pixels != static_cast<std::size_t>(mean->size()))
      return usage_error(fmt::format("`image_shape` {}x{} has {} pixels, but the model has {} columns",
                                     image_shape->height, image_shape->width, pixels,
                                     mean == nullptr ? 0 : mean->size()));
    options.image_shape = {image_shape->height, image_shape->width};
  }
  return write_file(path, html_report(*model_, options));
}

PublishedDirections::PublishedDirections(std::shared_ptr<const Model> model, bool per_row)
    : Published(std::move(model), per_row), mean(numbers("mean")), angle(numbers("angle")) {
  const nlohmann::json& said = this->model().manifest;
  if (const auto found = said.find("verdicts"); found != said.end() && found->contains("sentence"))
    verdict = (*found)["sentence"].get<std::string>();
  if (const auto found = said.find("noise_edge"); found != said.end() && found->is_number())
    noise_edge = found->get<double>();
  const Vector standing = numbers("verdict"), first = numbers("verdict_first"), last = numbers("verdict_last");
  if (first.size() != standing.size() || last.size() != standing.size()) return;
  for (Eigen::Index i = 0; i < standing.size(); ++i)
    judged.push_back({static_cast<Standing>(std::clamp(standing[i], 0.0, 3.0)),
                      static_cast<std::size_t>(std::max(0.0, first[i])),
                      static_cast<std::size_t>(std::max(0.0, last[i]))});
}

Result<Matrix> PublishedDirections::transform(const Rows& rows) const {
  return Matrix(
      EIGENVEIL_TRY(rows.given() ? scores(model(), *rows.given()) : scores(model(), rows.path(), SourceOptions{})));
}

PublishedComponents::PublishedComponents(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      components(array("components")),
      eigenvalues(numbers("eigenvalues")),
      eigenvalues_estimate(numbers("eigenvalues_estimate")),
      eigenvalues_low(numbers("eigenvalues_low")),
      eigenvalues_high(numbers("eigenvalues_high")),
      spread(numbers("spread")),
      components_deviation(array("components_deviation")),
      variance_share(numbers("variance_share")),
      variance_share_low(numbers("variance_share_low")),
      variance_share_high(numbers("variance_share_high")) {}

Result<Matrix> PublishedComponents::inverse_transform(const Matrix& scores) const {
  if (scores.cols() != components.rows())
    return usage_error(
        fmt::format("scores have {} columns, but there are {} components", scores.cols(), components.rows()));
  // x = (z C diag(spread) + mean) / scale + offset
  Matrix rows = scores * components;
  if (spread.size() > 0) rows.array().rowwise() *= spread.transpose().array();
  rows.rowwise() += mean.transpose();
  rows.array().rowwise() /= array("scale").reshaped().transpose().array();
  rows.rowwise() += array("offset").reshaped().transpose();
  return rows;
}

}  // namespace eigenveil
