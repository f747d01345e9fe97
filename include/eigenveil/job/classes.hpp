// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/gep.hpp"

namespace eigenveil {

/// Private discriminant directions of labelled rows, from a data file to a released model.
struct FdaJob {
  FitJob fit;
  GepChoices gep;
  std::string label;                 ///< column
  std::vector<std::string> classes;  ///< public labels; empty: those of the schema
  bool drop_unlisted = false;        ///< rows of other labels count as zero; else they are an error
};

/// Model "fda": scalings (d x K), eigenvalues (K), class_means (C x d), priors (C), mean, offset and scale (d).
Result<Study> study(FdaJob job);

/// How a response is cut into slices. All three are public, or paid for.
struct Slices {
  std::vector<double> cuts;   ///< ascending; or else
  std::size_t count = 10;     ///< of equal width within the public range of the response,
  bool private_cuts = false;  ///< or with about equal numbers of rows, merged from eight times as many, privately
};

/// Private sliced inverse regression, from a data file to a released model.
struct SirJob {
  FitJob fit;
  GepChoices gep;
  std::string response;  ///< column
  Slices slices;
  std::optional<NumericColumn> response_range;  ///< public; default: that of the schema
};

/// Model "sir": directions (d x K), eigenvalues (K), slice_means (C x d), mean, offset and scale (d).
Result<Study> study(SirJob job);

}  // namespace eigenveil
