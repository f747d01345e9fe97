// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/query/meter.hpp"
#include "eigenveil/query/oracle.hpp"

namespace eigenveil {

/// Two private symmetric matrices that somebody else computed, and how far one row can move them (Frobenius norm).
/// The guarantee is as good as these two numbers.
struct PrivateMatrices {
  Matrix A;
  Matrix B;
  double sensitivity_a;
  double sensitivity_b;
};

/// Answers for two given matrices as any oracle does for rows: exact integers, discrete noise, each ask the next one
/// of a charged plan. The second word of a label names the matrix: "matrix a", "product b 3". `Gram` asks for it whole,
/// `Apply` for its product with directions. query.proof.md, "Given matrices".
class MatrixOracle final : public Oracle {
 public:
  /// Refuses matrices that are not square, finite, symmetric and of one size, and entries above 2^30 sensitivities.
  static Result<std::unique_ptr<MatrixOracle>> make(const PrivateMatrices& matrices, std::size_t rows,
                                                    std::unique_ptr<Reservation> reservation, SecureRandom random);
  /// What `make` would refuse, before anything is charged.
  static Status check(const PrivateMatrices& matrices);
  /// No answer has a larger sensitivity, in its own lattice units.
  static Sensitivity largest_sensitivity() { return Sensitivity(0x1p33); }
  ~MatrixOracle() override;
  MatrixOracle(const MatrixOracle&) = delete;
  MatrixOracle& operator=(const MatrixOracle&) = delete;

  RowsShape shape() const override { return {d_, rows_, {1, 20}, Adjacency::kReplaceOne}; }
  const PrivacyPlan& plan() const override { return reservation_->plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override;
  bool complete() const override { return meter_.complete(); }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override;
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override;
  Status recenter(const Vector& mean, RowBound radius) override;
  Status remap(const LinearMap& M, RowBound radius) override;

 private:
  struct Steps {
    std::vector<std::int64_t> entries;  ///< d x d
    double unit;                        ///< a power of two
    double sensitivity;                 ///< in units, rounded up
  };
  static Steps quantise(const Matrix& M, double sensitivity);
  MatrixOracle(std::size_t d, std::size_t rows, Steps a, Steps b, std::unique_ptr<Reservation> reservation,
               SecureRandom random);
  Result<PrivateSum> whole(const Steps& from) const;
  Result<PrivateSum> product(const Steps& from, const Directions& X) const;
  Result<Answer> release(const std::string& label, PrivateSum sum);

  std::size_t d_;
  std::size_t rows_;
  Steps a_;
  Steps b_;
  std::unique_ptr<Reservation> reservation_;
  Meter meter_;
  SecureRandom random_;
  bool answering_ = false;
};

}  // namespace eigenveil
