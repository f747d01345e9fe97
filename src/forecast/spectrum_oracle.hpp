// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/meter.hpp"
#include "spectrum_law.hpp"

namespace eigenveil {

/// Answers what n rows of the law would sum up to, with the noise of the plan. The rows' second moment is
///   G / n = D A A^T D + b s s^T
/// with D^2 the variances that the row bound leaves, s the centre that rows are about (their own mean is zero) and b
/// what the bound leaves of it. A filtered product is, for Gaussian rows u and t = X^T u,
///   sum w u t^T = G X (E t t^T)^-1 E w t t^T,
/// exactly so where the filter's weight w depends on u by t alone; the two moments come from the few rows.
class SpectrumOracle final : public LawOracle {
 public:
  SpectrumOracle(const LawColumns& columns, const LawRows& few, const Matrix& A, std::size_t rows, double radius,
                 double stands_for, const PrivacyPlan& plan, std::uint64_t seed, LawOrder order);

  RowsShape shape() const override;
  const PrivacyPlan& plan() const override { return meter_.plan(); }
  bool complete() const override { return meter_.complete(); }
  bool at_a_loss() const override { return at_a_loss_; }
  double stretch() const override { return stretch_; }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override;
  Result<Answer> ask_rest(const std::string& label, const SumQuery& query) override;
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override;
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override;
  Result<Answer> ask_model(const std::string& /*label*/, const ModelQuery& /*query*/) override { return loss(); }
  Result<Answer> ask_batch(const std::string& /*label*/, const BatchQuery& /*query*/) override { return loss(); }
  Status recenter(const Vector& mean, RowBound radius) override;
  Status remap(const LinearMap& /*M*/, RowBound /*radius*/) override { return loss(); }

 private:
  Matrix inside(const Directions& X) const;
  bool merged() const { return few_.X.size() == 0; }
  Error loss();
  void bound();                             ///< after a change of centre or radius
  Matrix few_along(const Matrix& X) const;  ///< t = X^T u of the few rows: m x p
  Matrix second_moment() const;             ///< G / n
  Matrix times(const Matrix& X) const;      ///< G X / n
  Matrix filtered(const Matrix& X, const Matrix& t, const Vector& weights) const;  ///< the product, over n
  Result<Matrix> sum_of(const SumQuery& query) const;                              ///< empty: at a loss
  PrivateCounts counted(const Vector& values, const std::vector<double>& grid) const;
  Result<Answer> answer(const std::string& label, const SumQuery& query, Mu mu);
  Result<Answer> noised(Matrix sum, double deviation, const std::string& label, bool symmetric);

  const LawColumns& columns_;
  const LawRows& few_;
  const Matrix& A_;
  double n_;
  double radius_;  ///< of the lattice now
  double least_;   ///< of all radii so far: no row is longer
  double stretch_;
  Meter meter_;
  std::uint64_t seed_;
  LawOrder order_;  ///< asks and answers are in this order, all else along the eigenvectors
  Vector centre_;
  Vector weights_;  ///< of the few rows: what the bound leaves of their length
  Vector root_;     ///< D: diagonal
  bool at_a_loss_ = false;
};

}  // namespace eigenveil
