// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// The rows of an Eigen expression, computed a batch at a time. Whatever the expression refers to must outlive it.
template <class Derived>
class ExpressionSource final : public RowSource {
  using Scalar = typename Derived::Scalar;

 public:
  /// Columns are numbered "1", "2", ... unless names are given.
  ExpressionSource(const Derived& expression, std::vector<std::string> names)
      : expression_(expression), names_(std::move(names)) {
    if (names_.empty())
      for (Eigen::Index j = 1; j <= expression_.cols(); ++j) names_.push_back(std::to_string(j));
  }

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return expression_.rows(); }
  double progress() const override {
    return expression_.rows() == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(expression_.rows());
  }
  double exact_below() const override {
    if constexpr (Eigen::NumTraits<Scalar>::IsInteger) return 0x1p53;
    return std::ldexp(1.0, std::min(53, std::numeric_limits<Scalar>::digits));
  }
  Status skip(std::size_t rows) override {
    done_ += count(rows);
    return {};
  }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    const Eigen::Index rows = count(max_rows), columns = expression_.cols();
    if (std::ssize(names_) != columns)
      return usage_error("there are " + std::to_string(names_.size()) + " names for " + std::to_string(columns) +
                         " columns");
    batch.first_row = done_;
    batch.rows = rows;
    batch.values.resize(rows * columns);
    Eigen::Map<RowMajorMatrix>(batch.values.data(), rows, columns) =
        expression_.middleRows(done_, rows).template cast<double>();
    done_ += rows;
    return {};
  }

 private:
  Eigen::Index count(std::size_t most) const { return std::min<std::size_t>(most, expression_.rows() - done_); }

  // A reference to a matrix, a copy of a light expression; a product is computed once.
  typename Eigen::internal::nested_eval<Derived, 1>::type expression_;
  std::vector<std::string> names_;
  Eigen::Index done_ = 0;
};

}  // namespace eigenveil
