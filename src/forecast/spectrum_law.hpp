// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "eigenveil/forecast/row_law.hpp"
#include "eigenveil/forecast/spectrum_model.hpp"

namespace eigenveil {

/// Columns along the eigenvectors of the model. One of variance lambda may stand for `count` of about that variance:
/// noise between it and others is then sqrt(count) times as large, so that a direction loses as much to it as to all
/// that it stands for, and the edge of the noise stays where it is (as verdicts on filtered products do).
struct LawColumns {
  Vector lambda;
  Vector count;

  Eigen::Index size() const { return lambda.size(); }
};

/// Where the eigenvectors lie among an oracle's columns: elsewhere in every draw, so that the public start of a power
/// method meets them by chance.
using LawOrder = Eigen::PermutationMatrix<Eigen::Dynamic>;

/// A few rows, to tell what bounds and filters do.
struct LawRows {
  RowMajorMatrix X;      ///< m x D; empty if columns are merged
  Matrix squares;        ///< m x D: x_j^2 / lambda_j, the mean of those that a column stands for
  Vector squared_norms;  ///< m
  Vector sums;           ///< of the columns of `squares`
};

/// A draw of second moments: A(n) A(n)^T / n ~ Wishart(I, n) / n (Bartlett 1933) with the same T, z for every n.
struct LawDraw {
  Matrix T;  ///< below the diagonal: standard normal
  Vector z;  ///< standard normal: quantiles of the diagonal's chi
  std::size_t rows = 0;
  Matrix A = {};  ///< of that many rows
};

/// Rows of a spectrum model whose top components lie on all columns and in all rows.
class SpectrumLaw final : public RowLaw {
 public:
  explicit SpectrumLaw(SpectrumModel model);

  std::unique_ptr<LawOracle> oracle(std::size_t rows, const PrivacyPlan& plan, std::uint64_t seed, bool whole) override;
  std::size_t columns() const override { return model_.spectrum.size(); }
  double radius() const override { return model_.row_bound; }
  Matrix truth(const std::string& array, std::uint64_t seed, bool whole) const override;
  double lost(const Matrix& V, std::uint64_t seed, bool whole) const override;

 private:
  /// All columns, or merged ones.
  struct Form {
    LawColumns columns;
    std::optional<LawRows> rows = {};
    std::map<std::uint64_t, LawDraw> draws = {};
  };
  static LawOrder order_of(const Form& form, std::uint64_t seed);
  const LawRows& rows_of(Form& form) const;
  const LawDraw& draw_of(Form& form, std::uint64_t seed, std::size_t rows) const;
  Form& form(bool whole) { return whole || !merged_ ? whole_ : *merged_; }
  const Form& form(bool whole) const { return whole || !merged_ ? whole_ : *merged_; }

  SpectrumModel model_;
  Form whole_;
  std::optional<Form> merged_;
};

}  // namespace eigenveil
