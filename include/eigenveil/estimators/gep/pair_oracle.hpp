#pragma once

#include <memory>

#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/query/meter.hpp"
#include "eigenveil/query/oracle.hpp"

namespace eigenveil {

/// Two private symmetric matrices that somebody else computed, and how far one row can move them (Frobenius norm).
/// The guarantee is as good as these two numbers.
struct PrivatePair {
  Matrix A;
  Matrix B;
  double sensitivity_a;
  double sensitivity_b;
};

enum class Which { kA, kB };

/// Answers for a pair of matrices as an Oracle does for rows: exact integers, discrete noise, each ask the next one of
/// a charged plan. query.proof.md, "A given pair".
class PairOracle {
 public:
  /// Refuses matrices that are not square, finite, symmetric and of one size, and entries above 2^30 sensitivities.
  static Result<PairOracle> make(const PrivatePair& pair, std::unique_ptr<Reservation> reservation,
                                 SecureRandom random);
  /// What `make` would refuse, before anything is charged.
  static Status check(const PrivatePair& pair);
  /// No answer has a larger sensitivity, in its own lattice units.
  static Sensitivity largest_sensitivity() { return Sensitivity(0x1p33); }
  ~PairOracle();
  PairOracle(PairOracle&&) = default;
  PairOracle(const PairOracle&) = delete;
  PairOracle& operator=(const PairOracle&) = delete;
  PairOracle& operator=(PairOracle&&) = delete;

  std::size_t columns() const { return d_; }
  /// The whole matrix.
  Result<Answer> ask(const std::string& label, Which which);
  /// Its product with a public matrix V (d x k) of nearly orthonormal columns.
  Result<Answer> ask_product(const std::string& label, Which which, const Matrix& V);
  bool complete() const { return meter_.complete(); }

 private:
  struct Lattice {
    std::vector<std::int64_t> entries;  ///< d x d
    double unit;                        ///< a power of two
    double sensitivity;                 ///< in units, rounded up
  };
  static Lattice quantise(const Matrix& M, double sensitivity);
  PairOracle(std::size_t d, Lattice a, Lattice b, std::unique_ptr<Reservation> reservation, SecureRandom random);
  const Lattice& lattice(Which which) const { return which == Which::kA ? a_ : b_; }
  Result<Answer> release(const std::string& label, PrivateSum sum);

  std::size_t d_;
  Lattice a_;
  Lattice b_;
  std::unique_ptr<Reservation> reservation_;
  Meter meter_;
  SecureRandom random_;
  bool answering_ = false;
};

}  // namespace eigenveil
