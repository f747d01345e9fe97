// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/gep.hpp"

namespace eigenveil {

/// Private solutions of A v = lambda B v for two given matrices, from files to a released model.
struct MatricesJob {
  FitJob fit;  ///< of its rows only `person` is used: then sensitivities and `rows` are those of people
  GepChoices gep;
  std::string matrix_a;  ///< d x d, symmetric; any kind of file that rows may have
  std::string matrix_b;
  double sensitivity_a;  ///< how far one row can move the matrix as it is given, in Frobenius norm
  double sensitivity_b;
  std::size_t rows;                         ///< public number of rows behind the matrices, for the record
  std::shared_ptr<GivenRows> given_a = {};  ///< the matrices themselves, instead of files
  std::shared_ptr<GivenRows> given_b = {};
};

/// Model "gep": vectors (d x K), eigenvalues (K), mean, offset and scale (d; zero, zero and one).
Result<Release> release(const MatricesJob& job, Observer& observer);

}  // namespace eigenveil
