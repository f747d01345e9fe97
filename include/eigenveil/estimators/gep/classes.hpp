// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/gep/gep.hpp"

namespace eigenveil {

// Two problems over rows with classes c, with n_c rows of mean m_c in a class, m the mean of all (Fisher 1936; Li
// 1991):
//   A = sum_c (n_c / n) (m_c - m)(m_c - m)^T
//   fda  B = G / n - sum_c (n_c / n) m_c m_c^T   (within classes)
//   sir  B = G / n - m m^T                       (classes are slices of a response)
// A comes from released class sums and counts, which take d C numbers; B from one Gram matrix, or its products from one
// Apply per round.

enum class ClassProblem { kFisher, kSliced };

struct ClassOptions {
  GepOptions gep;
  ClassProblem problem;
  std::size_t classes;  ///< C, at least 2
  /// sir: C fine slices are merged, in order, into this many of about equal released counts; default: as they are
  std::optional<std::size_t> merged = {};
  std::vector<std::string> names = {};  ///< of the classes, or of the fine slices: public; default: numbers
  std::vector<double> cuts = {};        ///< sir: between the fine slices
  std::string response = {};            ///< sir: the column that was cut
  bool drop_unlisted = false;           ///< fda: rows of other labels count as zero
  double sums_share = 0.22;             ///< of the work's mu^2, for the class sums; `with_sums_share` fits it
};

struct ClassResult {
  GepResult solution;
  Matrix class_means;  ///< C x d, in the features' units (after the mean of `prepared_mean`, if any)
  Vector priors;       ///< C, sum 1: released counts, those that noise hides set to zero; all hidden: all alike
  Vector mean;         ///< d: of all rows, in the features' units
  double rows;
  std::vector<std::size_t> empty;  ///< classes whose released count is no larger than noise
  std::vector<std::size_t> first;  ///< merged: the first fine slice of each
};

Status check(const RowsShape& shape, const ClassOptions& options);

/// The means of C classes enter the directions once, the d x d matrix B through its inverse: noise in both costs the
/// least where their shares of mu^2 are about as 2 C to d (src/estimators/gep/classes.cpp).
ClassOptions with_sums_share(ClassOptions options, std::size_t columns);

/// Why noise will hide all classes of such rows, if it will.
std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget, const ClassOptions& options);

/// Every answer `fit_classes` will ask for, with relative weights for `calibrate`.
PrivacyPlan plan_classes(Adjacency adjacency, const ClassOptions& options);

/// "fda" or "sir".
std::unique_ptr<Estimator> estimator(ClassOptions options);

/// The oracle's plan is what `calibrate` made of `plan_classes`.
Result<ClassResult> fit_classes(Oracle& oracle, const ClassOptions& options);

/// Cuts for merging: the first of each group of neighbouring slices, so that groups hold about equal shares.
std::vector<std::size_t> merge_slices(const Vector& counts, std::size_t groups);

}  // namespace eigenveil
