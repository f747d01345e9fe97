// SPDX-License-Identifier: Apache-2.0
#include "filtered_run.hpp"

#include <algorithm>
#include <cmath>

#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "sampled_moments.hpp"

namespace eigenveil {
namespace {

using Index = Eigen::Index;

/// A population: variances along the first coordinates, and one of all others.
struct Ellipse {
  Vector l;
  double b;
};

/// Some Gaussian rows that tell what a bound and a filter leave. Components are the first coordinates.
class FewRows {
 public:
  FewRows(const FilteredRun& run, Index top, Index rows, PublicStream& stream) : run_(run) {
    const Index others = static_cast<Index>(run.columns) - top;
    top_ = stream.normals(rows, top);
    block_ = stream.normals(rows, std::min(static_cast<Index>(run.widths[0]), std::max<Index>(others, 0)));
    rest_ = block_.rowwise().squaredNorm();
    const Index unseen = others - block_.cols();
    if (unseen > 0)
      for (double& sum : rest_) sum += std::pow(stream.chi(static_cast<double>(unseen)), 2);
  }

  /// What a search's bound leaves of each variance: E w^2 x^2 / E x^2, w = min(1, R / |x|).
  Ellipse shortened(const Ellipse& whole) const {
    const Vector w2 = weights(whole).cwiseAbs2();
    const Matrix squares = top_.cwiseAbs2();
    const Vector left = (squares.transpose() * w2).cwiseQuotient(squares.colwise().sum().transpose());
    return {whole.l.cwiseProduct(left), whole.b * rest_.dot(w2) / std::max(rest_.sum(), 1e-300)};
  }

  /// (E t t^T)^-1 E v t t^T, t = A^T u, for rows u of that population, v the filter's weight.
  Matrix filtered(const Ellipse& whole, const Matrix& A) const {
    const Index K = whole.l.size(), w = std::min(block_.cols(), A.cols());
    Matrix beside = A;
    beside.topRows(K).setZero();
    const Matrix S = upper_factor(beside, w);
    const Vector kept = weights(whole);
    const Matrix t = kept.asDiagonal() * (top_ * whole.l.cwiseSqrt().asDiagonal() * A.topRows(K) +
                                          std::sqrt(whole.b) * block_.leftCols(w) * S);
    const Vector found = lengths(whole).cwiseProduct(kept).cwiseProduct(t.rowwise().norm());
    Vector sorted = found;
    const auto at = static_cast<Index>((1 - run_.above) * static_cast<double>(found.size() - 1));
    std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
    const double theta = sorted[at];
    const Vector v = found.unaryExpr([&](double x) { return x <= theta ? 1.0 : run_.drop ? 0.0 : theta / x; });
    Matrix all = t.transpose() * t;
    all.diagonal().array() += 1e-9 * all.trace() / static_cast<double>(t.cols()) + 1e-300;
    return Ldlt(all).solve(Matrix(t.transpose() * v.asDiagonal() * t));
  }

 private:
  Vector lengths(const Ellipse& whole) const {
    return (top_.cwiseAbs2() * whole.l + whole.b * rest_).cwiseMax(1e-300).cwiseSqrt();
  }
  Vector weights(const Ellipse& whole) const {
    if (!run_.radius) return Vector::Ones(top_.rows());
    return lengths(whole).unaryExpr([&](double length) { return std::min(1.0, *run_.radius / length); });
  }

  const FilteredRun& run_;
  Matrix top_;    // along the components
  Matrix block_;  // along what a block has besides them
  Vector rest_;   // squared length of all but the components
};

/// One run after the other in a few dimensions that stand for all columns.
class Reruns {
 public:
  Reruns(const FilteredRun& run, PublicStream& stream)
      : run_(run),
        K_(static_cast<Index>(run.components)),
        D_(std::min(static_cast<Index>(run.columns), std::max(kDimensions, 2 * static_cast<Index>(run.widths[0])))),
        stretch_(std::sqrt(static_cast<double>(run.columns) / static_cast<double>(D_))),
        top_(std::min(K_ + 1, D_)),
        seen_level_(run.level) {
    const FewRows many(run, top_, kManyRows, stream);
    // What bound and filter leave of a component and of the level, by fixed points
    const Matrix start = begin(stream), top = Matrix::Identity(D_, K_);
    double of_level = 1;
    for (int pass = 0; pass < 20; ++pass) {
      b_ = std::max(seen_level_, 0.0) / of_level;
      const Ellipse whole = ellipse((run.values.array() / kept_ - b_).max(0.0));
      const Ellipse left = many.shortened(whole);
      const auto share = [&](const Matrix& A, double part, double of) {
        const double cut = of > 0 ? part / of : 1.0;
        return std::clamp(cut * many.filtered(whole, A).diagonal().mean(), 0.1, 1.0);
      };
      if (run.level_unfiltered) seen_level_ = run.level * many.filtered(whole, start).diagonal().mean();
      of_level = share(start, left.b, whole.b);
      kept_ = share(top, left.l.head(K_).sum(), whole.l.head(K_).sum());
    }
  }

  Index dimensions() const { return D_; }
  double level() const { return b_; }
  /// The same in a first product that nothing was known for.
  double seen_level() const { return seen_level_; }
  /// Values above the level, as they would be of whole rows.
  Vector above(const Vector& values, double level) const { return (values.array() - level) / kept_; }

  Found draw(const Vector& excess, PublicStream& stream) const {
    // Other rows in every draw: what a few of them tell of the filter is off by more than many rows differ.
    const FewRows few(run_, top_, kFewRows, stream);
    const Ellipse whole = ellipse(excess), left = few.shortened(whole);
    const double tau = stretch_ * run_.tau;
    const SampledMoments G(Matrix::Identity(D_, whole.l.size()), left.l, left.b, run_.rows, run_.tau, stream, stretch_);
    const Matrix start = begin(stream);
    RememberedProducts memory(start, run_.widths, run_.components);
    for (const double sigma : run_.sigmas) {
      const Matrix A = memory.directions() * memory.scale();
      const Matrix noise = stretch_ * sigma * stream.normals(D_, A.cols());
      memory.learn(A, G.times(A) * few.filtered(whole, A) - tau * tau * A + noise, stretch_ * sigma);
    }
    return {above(memory.values(), level_beside(memory, start)), memory.vectors()};
  }

 private:
  static constexpr Index kDimensions = 128;
  static constexpr Index kManyRows = 4000;  // that say what to expect
  static constexpr Index kFewRows = 400;    // of one draw

  Matrix begin(PublicStream& stream) const {
    return orthonormal(stream.normals(D_, static_cast<Index>(run_.widths[0])));
  }
  Ellipse ellipse(const Vector& excess) const {
    Vector l(top_);
    l.head(K_) = excess.array() + b_;
    if (l.size() > K_) l[K_] = unseen_neighbour(excess) + b_;
    return {l, b_};
  }

  const FilteredRun& run_;
  Index K_, D_;
  double stretch_;
  Index top_;  // the components and a neighbour that nobody saw
  double seen_level_;
  double b_ = 0;
  double kept_ = 1;
};

/// What lies above the level only by chance, its band says, is noise, and what comes after it.
Index certain(Verdict& verdict, Index found) {
  Index q = 0;
  while (q < found && verdict.low[q] > 0) ++q;
  for (Index i = 0; i < std::ssize(verdict.judged); ++i) {
    Judged& one = verdict.judged[static_cast<std::size_t>(i)];
    if (i < q) {
      if (static_cast<Index>(one.last) > q) one = {Standing::kWeak, 0, 0};
      continue;
    }
    one = {};
    verdict.cos2[i] = verdict.estimate[i] = verdict.low[i] = 0;
    verdict.high[i] = std::max(verdict.high[i], verdict.line);
  }
  verdict.found = static_cast<std::size_t>(q);
  return q;
}

}  // namespace

double level_beside(const RememberedProducts& memory, const Matrix& start) {
  const Matrix seen = (memory.vectors().transpose() * start).cwiseAbs2();  // components x columns of the start
  const auto width = static_cast<double>(start.cols());
  return (memory.level() * width - seen.rowwise().sum().dot(memory.values())) / std::max(width - seen.sum(), 0.05);
}

Result<Verdict> FilteredRun::judge() const {
  PublicStream stream(19370602);
  const Reruns reruns(*this, stream);
  const auto K = static_cast<Eigen::Index>(components);
  constexpr double kManyNumbers = 20000;  // of a draw's products, over all rounds
  double numbers = 0;
  for (const std::size_t width : widths) numbers += static_cast<double>(width * reruns.dimensions());
  Lying lying;
  Rerun rerun{.released = {reruns.above(values, reruns.seen_level()), Matrix::Identity(reruns.dimensions(), K)},
              .components = components,
              .root = {},
              .draw = {}};
  rerun.pass = 3;
  rerun.effort = std::min(1.0, kManyNumbers / numbers);
  rerun.lying = &lying;
  rerun.draw = [&](const Vector& excess, const Matrix&, PublicStream& random) -> Result<Found> {
    return reruns.draw(excess, random);
  };
  auto verdict = EIGENVEIL_TRY(judge_rerun(rerun));
  const Eigen::Index q = certain(verdict, std::min(static_cast<Eigen::Index>(verdict.found), K));
  const double b = reruns.level();
  for (Vector* all : {&verdict.estimate, &verdict.low, &verdict.high}) all->array() += b;
  verdict.low.tail(K - q).setZero();
  verdict.line += b;
  verdict.deviation = vectors.cwiseAbs();  // of noise nothing is found
  if (q == 0) return verdict;
  // dev_ai^2 = sum_j U_aj^2 spread_ji; directions beside the components share what is left of each row evenly.
  const Matrix squares = vectors.cwiseAbs2();
  const Vector left = (1 - squares.rowwise().sum().array()).max(0.0);
  const double others = std::max(1.0, static_cast<double>(vectors.rows() - K));
  verdict.deviation.leftCols(q) =
      (squares * lying.spread.topRows(K).leftCols(q) + left * lying.spread.row(K).leftCols(q) / others)
          .cwiseMax(0.0)
          .cwiseSqrt();
  return verdict;
}

}  // namespace eigenveil
