// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/matrices.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kMostMatrixColumns = 5000;

Result<Matrix> read_matrix(const std::string& file, const std::shared_ptr<GivenRows>& given) {
  const auto source = EIGENVEIL_TRY(given ? given->take({}) : open_source(file, {.header = HeaderRule::kNo}));
  const std::string& path = given ? given->name() : file;
  const std::size_t d = source->columns().size();
  if (d > kMostMatrixColumns)
    return bad_input(fmt::format("{}: has {} columns; a matrix may have at most {}", path, d, kMostMatrixColumns));
  const Eigen::Index width = d;
  Matrix M(width, width);
  RawBatch batch;
  Eigen::Index row = 0;
  for (;;) {
    EIGENVEIL_TRY(source->next(batch, 256));
    if (batch.rows == 0) break;
    for (std::size_t i = 0; i < batch.rows; ++i, ++row) {
      if (row == width) return bad_input(fmt::format("{}: has {} columns but more rows; it must be square", path, d));
      M.row(row) = Eigen::Map<const Eigen::RowVectorXd>(&batch.values[i * d], width);
    }
  }
  if (row < width) return bad_input(fmt::format("{}: has {} columns but {} rows; it must be square", path, d, row));
  return M;
}

Result<PrivateMatrices> read_matrices(const MatricesJob& job) {
  auto A = EIGENVEIL_TRY(read_matrix(job.matrix_a, job.given_a));
  auto B = EIGENVEIL_TRY(read_matrix(job.matrix_b, job.given_b));
  PrivateMatrices matrices{std::move(A), std::move(B), job.sensitivity_a, job.sensitivity_b};
  EIGENVEIL_TRY(MatrixOracle::check(matrices));
  return matrices;
}

// Two matrices that wait for a charge.
class HeldMatrices final : public HeldRows {
 public:
  HeldMatrices(PrivateMatrices matrices, const MatricesJob& job) : matrices_(std::move(matrices)), job_(job) {}

  std::size_t columns() const override { return matrices_.A.rows(); }
  Lattice lattice() const override { return {1, 20, job_.fit.rows.person ? kPersonBits : 0}; }
  std::optional<std::size_t> rows() const override { return job_.rows; }
  BoundingDiagnostics diagnostics() const override { return {}; }
  Result<ChargedOracle> charge(const ChargeRequest& request, Observer& observer) override {
    auto charged = EIGENVEIL_TRY(charge_plan(request.draft, MatrixOracle::largest_sensitivity(), request.privacy,
                                             request.run, files(), request.purpose, observer));
    auto oracle = EIGENVEIL_TRY(
        MatrixOracle::make(matrices_, job_.rows, std::move(charged.reservation), std::move(charged.random)));
    return ChargedOracle{static_cast<Charge&&>(charged), std::move(oracle)};
  }

 private:
  RowFiles files() const {
    RowFiles all = files_of(job_.given_a, job_.matrix_a);
    all.add(files_of(job_.given_b, job_.matrix_b));
    return all;
  }
  PrivateMatrices matrices_;
  const MatricesJob& job_;
};

}  // namespace

Result<Release> release(const MatricesJob& job, Observer& observer) {
  Rivals rivals;
  rivals.estimators.push_back(estimator_by(job.fit.privacy.calibration, gep_options(job.gep, job.fit, 1),
                                           job.sensitivity_a, job.sensitivity_b));
  observer.step("reading matrices");
  HeldMatrices matrices(EIGENVEIL_TRY(read_matrices(job)), job);
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= matrices.columns(); ++i) names.push_back(std::to_string(i));
  OpenedData opened{nullptr, ColumnMap::identity(names)};
  if (job.fit.rows.person) opened.person = job.fit.rows.person->column;
  EIGENVEIL_TRY(check(job.fit, rivals, opened));
  return release(job.fit, rivals, opened, matrices, observer);
}

}  // namespace eigenveil
