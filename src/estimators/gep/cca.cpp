// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/cca.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {
namespace {

std::string cca_products_label(std::size_t round) { return fmt::format("products {}", round); }

struct Views {
  Eigen::Index x;
  Eigen::Index y;
};

Views views_of(const RowsShape& shape, const CcaOptions& options) {
  return {static_cast<Eigen::Index>(options.x_columns), static_cast<Eigen::Index>(shape.columns - options.x_columns)};
}

// The largest singular value that noise alone typically gives to the covariances between views: that of a noise matrix,
// and of r_x r_y^T, r the error of the mean, where theta = tau^2 sqrt(d_x d_y) stands out of it (Benaych-Georges and
// Nadakuditi 2012).
double cross_edge(const Views& d, double sigma, double tau) {
  const auto x = static_cast<double>(d.x);
  const auto y = static_cast<double>(d.y);
  const double edge = sigma * (std::sqrt(x) + std::sqrt(y));
  const double theta = tau * tau * (std::sqrt(x) + 1.2) * (std::sqrt(y) + 1.2);
  if (!(theta > sigma * std::pow(x * y, 0.25))) return edge;
  return std::max(edge, std::sqrt((sigma * sigma * x + theta * theta) * (sigma * sigma * y + theta * theta)) / theta);
}

NoisyMatrices matrices_of(const Matrix& S, const Views& d, double sigma, double tau) {
  NoisyMatrices matrices{S, S, sigma, sigma, cross_edge(d, sigma, tau), false, d.x};
  matrices.A.topLeftCorner(d.x, d.x).setZero();
  matrices.A.bottomRightCorner(d.y, d.y).setZero();
  matrices.B.topRightCorner(d.x, d.y).setZero();
  matrices.B.bottomLeftCorner(d.y, d.x).setZero();
  matrices.B.diagonal().array() -= tau * tau;
  return matrices;
}

// v_x and v_y each get B-norm 1: at a solution both halves of v^T B v = 1 are one half.
CcaResult result_of(const GepResult& solved, const Views& d, const Preparation& prepared) {
  CcaResult result{std::sqrt(2.0) * solved.vectors.topRows(d.x),
                   std::sqrt(2.0) * solved.vectors.bottomRows(d.y),
                   solved.values.cwiseMax(0).cwiseMin(1),
                   prepared.mean,
                   prepared.rows,
                   solved.ridge,
                   std::min(solved.noise_edge, 1.0),
                   prepared.mean_deviation,
                   solved.notes,
                   solved.judge};
  for (Eigen::Index j = 0; j < result.x_weights.cols(); ++j) {
    Eigen::Index largest = 0;
    result.x_weights.col(j).cwiseAbs().maxCoeff(&largest);
    if (result.x_weights(largest, j) >= 0) continue;
    result.x_weights.col(j) *= -1;
    result.y_weights.col(j) *= -1;
  }
  if (solved.values.size() > 0 && solved.values.maxCoeff() > 1 + 1e-9)
    result.notes.emplace_back("A correlation came out above 1 through noise and was set to 1.");
  return result;
}

/// What one noisy matrix of second moments says, and what it is worth.
class CcaOnce {
 public:
  CcaOnce(Matrix S, double sigma, const Preparation& prepared, const Views& d, GepOptions options)
      : S_(std::move(S)), sigma_(sigma), prepared_(prepared), d_(d), options_(std::move(options)) {}

  Result<GepResult> solve() const {
    return solve_matrices(matrices_of(S_, d_, sigma_, prepared_.mean_deviation), options_);
  }
  Result<Verdict> judge() const;

 private:
  Result<Matrix> root(Matrix block) const {
    block.diagonal().array() -= prepared_.mean_deviation * prepared_.mean_deviation;
    return population_root({block, sigma_, prepared_.rows, prepared_.mean_deviation});
  }
  /// Whether the trace of a view's own covariances is more than its noise.
  bool told(const Matrix& block) const {
    constexpr double kDeviations = 4;
    const auto d = static_cast<double>(block.rows());
    const double tau2 = prepared_.mean_deviation * prepared_.mean_deviation;
    return block.trace() - d * tau2 > kDeviations * std::sqrt(2 * d) * std::hypot(sigma_, tau2);
  }
  /// One release of x = R_x z_x, y = R_y (U_y diag(rho) U_x^T z_x + (I - U_y (I - diag(1 - rho^2)^1/2) U_y^T) z_y).
  Result<Found> draw(const Vector& rho, const Matrix& truth, const Matrix& root, PublicStream& stream) const;

  Matrix S_;
  double sigma_;
  Preparation prepared_;
  Views d_;
  GepOptions options_;
};

// Correlations as they came out, above 1 too: cut off at 1, all that noise gives would look alike.
Found found_in(const GepResult& solved, const Views& d, const Preparation& prepared) {
  const CcaResult result = result_of(solved, d, prepared);
  Found found{solved.values.cwiseMax(0.0), Matrix(d.x + d.y, result.x_weights.cols())};
  found.directions << result.x_weights, result.y_weights;
  return found;
}

Result<Found> CcaOnce::draw(const Vector& rho, const Matrix& truth, const Matrix& root, PublicStream& stream) const {
  const Matrix Rx = root.topLeftCorner(d_.x, d_.x), Ry = root.bottomRightCorner(d_.y, d_.y);
  const auto basis = [](const Matrix& W) {  // orthonormal, with the signs of W
    Matrix Q = orthonormal(W);
    for (Eigen::Index j = 0; j < Q.cols(); ++j)
      if (Q.col(j).dot(W.col(j)) < 0) Q.col(j) *= -1;
    return Q;
  };
  const Matrix Ux = basis(Rx * truth.topRows(d_.x)), Uy = basis(Ry * truth.bottomRows(d_.y));
  const Matrix Z = wishart_root(d_.x + d_.y, prepared_.rows, stream);
  const Matrix Zx = Z.topRows(d_.x), Zy = Z.bottomRows(d_.y);
  const Vector taken = 1 - (1 - rho.array().square()).max(0.0).sqrt();
  Matrix X(Z.rows(), Z.cols());
  X.topRows(d_.x) = Rx * Zx;
  X.bottomRows(d_.y) =
      Ry * (Uy * (rho.asDiagonal() * (Ux.transpose() * Zx)) + Zy - Uy * (taken.asDiagonal() * (Uy.transpose() * Zy)));
  Matrix S = X * X.transpose();
  add_noise(S, sigma_, stream);
  const Vector r = prepared_.mean_deviation * stream.normals(S.rows(), 1);
  S += r * r.transpose();
  const auto solved = EIGENVEIL_TRY(CcaOnce(std::move(S), sigma_, prepared_, d_, options_).solve());
  return found_in(solved, d_, prepared_);
}

Result<Verdict> CcaOnce::judge() const {
  // Two more than are judged, if there are: the last one has a neighbour too.
  CcaOnce wider = *this;
  wider.options_.components = std::min<std::size_t>(
      options_.components + 2, std::min({static_cast<std::size_t>(d_.x), static_cast<std::size_t>(d_.y),
                                         options_.sparsity.value_or(d_.x + d_.y)}));
  const auto solved = EIGENVEIL_TRY(wider.solve());
  Rerun rerun{.released = found_in(solved, d_, prepared_),
              .components = options_.components,
              .root = Matrix::Zero(d_.x + d_.y, d_.x + d_.y),
              .draw = {},
              .most = 0.999};
  rerun.root.topLeftCorner(d_.x, d_.x) = EIGENVEIL_TRY(root(S_.topLeftCorner(d_.x, d_.x)));
  rerun.root.bottomRightCorner(d_.y, d_.y) = EIGENVEIL_TRY(root(S_.bottomRightCorner(d_.y, d_.y)));
  rerun.draw = [&](const Vector& rho, const Matrix& truth, PublicStream& stream) {
    return wider.draw(rho, truth, rerun.root, stream);
  };
  // A view whose variation is not told from noise is correlated with nothing: noise is divided by noise.
  const bool both = told(S_.topLeftCorner(d_.x, d_.x)) && told(S_.bottomRightCorner(d_.y, d_.y));
  if (!both) rerun.released.values.setZero();
  // Both halves of a pair have the same length in the metric.
  const Matrix W = rerun.root * rerun.released.directions;
  const Vector x = W.topRows(d_.x).colwise().norm().cwiseMax(1e-300),
               y = W.bottomRows(d_.y).colwise().norm().cwiseMax(1e-300);
  rerun.released.directions.topRows(d_.x) *= x.cwiseInverse().asDiagonal();
  rerun.released.directions.bottomRows(d_.y) *= y.cwiseInverse().asDiagonal();
  auto verdict = EIGENVEIL_TRY(judge_rerun(rerun));
  const Eigen::Index k = verdict.deviation.cols();
  if (!both) {  // any value at all may come of it
    verdict.line = 1;
    verdict.high.setOnes();
  }
  verdict.deviation.topRows(d_.x) *= x.head(k).asDiagonal();
  verdict.deviation.bottomRows(d_.y) *= y.head(k).asDiagonal();
  return verdict;
}

Result<GepResult> solve_once(Oracle& oracle, const Preparation& prepared, const Views& d, const GepOptions& options) {
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  const CcaOnce once(gram.value() / prepared.rows, gram.deviation() / prepared.rows, prepared, d, options);
  auto solved = EIGENVEIL_TRY(once.solve());
  if (d.x + d.y <= kMostRerun) solved.judge = [once] { return once.judge(); };
  return solved;
}

// X = [Q_x 0; 0 Q_y] with V_x = Q_x R_x: orthonormal columns, so that noise shrinks with the length of V.
struct Split {
  Matrix X;
  Matrix Rx;
  Matrix Ry;
};

Split split(const Matrix& V, const Views& d, bool literal) {
  const Eigen::Index k = V.cols();
  Split parts{Matrix::Zero(V.rows(), 2 * k), Matrix::Identity(k, k), Matrix::Identity(k, k)};
  const Matrix Vx = V.topRows(d.x);
  const Matrix Vy = V.bottomRows(d.y);
  const Matrix Qx = literal ? Vx : orthonormal(Vx);
  const Matrix Qy = literal ? Vy : orthonormal(Vy);
  parts.X.topLeftCorner(d.x, k) = Qx;
  parts.X.bottomRightCorner(d.y, k) = Qy;
  if (!literal) {
    parts.Rx = Qx.transpose() * Vx;
    parts.Ry = Qy.transpose() * Vy;
  }
  return parts;
}

Result<GepResult> solve_by_flow(Oracle& oracle, const Preparation& prepared, const Views& d,
                                const GepOptions& options) {
  std::size_t round = 0;
  const double ridge = options.ridge.value_or(0);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    const Split parts = split(V, d, options.literal);
    const auto X = EIGENVEIL_TRY(Directions::quantise(parts.X));
    const auto answer = EIGENVEIL_TRY(oracle.ask(cca_products_label(++round), Apply{X}));
    const Matrix P = answer.value() / prepared.rows;
    const Eigen::Index k = V.cols();
    Products products{Matrix(V.rows(), k), Matrix(V.rows(), k)};
    // A V = (S_xy V_y; S_xy^T V_x),  B V = (S_xx V_x; S_yy V_y)
    products.AV.topRows(d.x) = P.topRightCorner(d.x, k) * parts.Ry;
    products.AV.bottomRows(d.y) = P.bottomLeftCorner(d.y, k) * parts.Rx;
    products.BV.topRows(d.x) = P.topLeftCorner(d.x, k) * parts.Rx;
    products.BV.bottomRows(d.y) = P.bottomRightCorner(d.y, k) * parts.Ry;
    products.BV += (ridge - prepared.mean_deviation * prepared.mean_deviation) * V;
    return products;
  };
  FlowOptions flow{.rounds = options.rounds, .step = options.step, .sparsity = options.sparsity};
  flow.literal = options.literal;
  flow.first_view = d.x;
  const auto flowed = EIGENVEIL_TRY(rayleigh_flow(multiply, random_start(d.x + d.y, options.components), flow));
  return GepResult{flowed.values, flowed.V, ridge, 0, {}};
}

}  // namespace

Status check(const RowsShape& shape, const CcaOptions& options) {
  EIGENVEIL_TRY(check(options.gep));
  if (options.x_columns < 1 || options.x_columns >= shape.columns)
    return usage_error("canonical correlations need at least one column in each view");
  const std::size_t most = std::min(options.x_columns, shape.columns - options.x_columns);
  if (options.gep.components > most)
    return bad_input(
        fmt::format("`components` is {} but the smaller view has {} columns", options.gep.components, most));
  if (options.gep.sparsity && *options.gep.sparsity > shape.columns)
    return usage_error(
        fmt::format("`sparsity` is {} but the two views have {} columns", *options.gep.sparsity, shape.columns));
  return {};
}

PrivacyPlan plan_cca(Adjacency adjacency, const CcaOptions& options) {
  const GepOptions& gep = options.gep;
  const bool once = gep.noise == GepNoise::kOnce;
  PrivacyPlan plan(
      adjacency, plan_preparation(adjacency, gep.preparation, once ? 1.0 : std::sqrt(static_cast<double>(gep.rounds))));
  if (once) plan.events.push_back({kCovarianceLabel, GaussianEvent{1.0}});
  for (std::size_t round = 1; !once && round <= gep.rounds; ++round)
    plan.events.push_back({cca_products_label(round), GaussianEvent{1.0}});
  return plan;
}

Result<CcaResult> fit_cca(Oracle& oracle, const CcaOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.gep.preparation));
  const RowsShape shape = oracle.shape();
  const Views d = views_of(shape, options);
  const auto solved =
      EIGENVEIL_TRY(options.gep.noise == GepNoise::kOnce ? solve_once(oracle, prepared, d, options.gep)
                                                         : solve_by_flow(oracle, prepared, d, options.gep));
  return result_of(solved, d, prepared);
}

namespace {

class CcaEstimator final : public Estimator {
 public:
  explicit CcaEstimator(CcaOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "cca"; }
  std::string method() const override { return std::string(eigenveil::name(options_.gep.noise)); }
  std::string purpose() const override {
    return fmt::format("cca, noise {}, components {}", method(), options_.gep.components);
  }
  nlohmann::json options() const override { return options_json(options_.gep); }
  Status check(const RowsShape& shape, const Budget& /*budget*/) const override {
    return eigenveil::check(shape, options_);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    CcaOptions options = options_;
    options.gep.preparation = with_shares(options.gep.preparation, shape, budget);
    return plan_cca(budget.adjacency, options);
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    // Noise in each step is no smaller.
    return drowned_before(shape, budget, options_.gep.preparation, {.sparsity = options_.gep.sparsity});
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    return sums_bytes(options_.gep, columns, 2 * options_.gep.components, threads);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& /*budget*/) const override {
    const auto found = EIGENVEIL_TRY(fit_cca(oracle, options_));
    Fit fit{{{"x_weights", found.x_weights},
             {"y_weights", found.y_weights},
             {"correlations", found.correlations, true},
             {"mean", found.mean, true}},
            found.rows};
    fit.facts["x_features"] = options_.x_columns;
    if (found.mean_deviation > 0) fit.facts["mean_deviation"] = found.mean_deviation;
    fit.judge = found.judge;
    add_solution(fit, found.ridge, found.noise_edge, found.correlations, found.notes);
    return fit;
  }

 private:
  CcaOptions options_;
};

}  // namespace

std::unique_ptr<Estimator> estimator(CcaOptions options) { return std::make_unique<CcaEstimator>(std::move(options)); }

}  // namespace eigenveil
