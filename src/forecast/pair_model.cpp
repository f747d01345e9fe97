// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/pair_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/data/memory_source.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kPairNumbers = std::size_t{1} << 20;  // that the draw may take

RowMajorMatrix draw_pairs(const PairModel& model, std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const Eigen::Index x = model.x_columns;
  const Eigen::Index y = model.y_columns;
  RowMajorMatrix rows = RowMajorMatrix::NullaryExpr(count, x + y, [&] { return normal(random); });
  const double rest = std::sqrt(1 - model.correlation * model.correlation);
  for (std::size_t k = 0; k < model.dim; ++k)
    rows.col(x + k) = model.correlation * rows.col(k) + rest * rows.col(x + k);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    rows.row(i).head(x).normalize();
    rows.row(i).tail(y).normalize();
  }
  return rows;
}

class PairRows final : public PublicModel {
 public:
  explicit PairRows(const PairModel& model) : model_(model) {}
  std::size_t rows() const override { return model_.rows; }
  std::size_t columns() const override { return model_.x_columns + model_.y_columns; }
  Status check() const override {
    if (model_.rows < 2) return usage_error("`rows` must be at least 2");
    if (!(model_.correlation > 0 && model_.correlation < 1))
      return usage_error(fmt::format("`correlation` must lie in (0, 1), but is {}", model_.correlation));
    return {};
  }
  Result<Sample> draw(std::size_t rows, int threads) const override {
    const std::size_t count = std::clamp<std::size_t>(kPairNumbers / columns(), std::min<std::size_t>(rows, 200), rows);
    MemorySource source(draw_pairs(model_, count));
    BoundingOptions bounding{.bound = *RowBound::of(std::sqrt(2.0))};
    bounding.threads = threads;
    auto bounded = EIGENVEIL_TRY(BoundedRows::read(source, ColumnMap::identity(source.columns()), bounding));
    Sample sample;
    sample.draws.push_back({std::move(bounded), [model = model_](const std::string& array) -> Matrix {
                              const Eigen::Index r = model.dim;
                              if (array == "image_weights") return Matrix::Identity(r, model.x_columns);
                              if (array == "text_weights") return Matrix::Identity(r, model.y_columns);
                              return {};
                            }});
    return sample;
  }

 private:
  PairModel model_;
};

}  // namespace

std::unique_ptr<PublicModel> public_model(const PairModel& model) { return std::make_unique<PairRows>(model); }

}  // namespace eigenveil
