// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/clip/clip.hpp"

namespace eigenveil {

/// A with A^T S A = I where S stands out of its noise (deviation `noise` an entry); smaller eigenvalues are lifted.
Result<Matrix> whitener(const Matrix& S, double noise, double floor);

/// The captions as corners: after centring and whitening, K captions in K - 1 dimensions are equally long and equally
/// far from each other, whatever words they have.
struct TextSide {
  Matrix weights;  ///< r x d2
  Vector mean;     ///< d2
  Matrix allowed;  ///< K x K: projects scores on what r dimensions can say, and on sum zero
  Matrix solve;    ///< r x K: scores (of sum zero) to the f(x) whose products with the captions they are
};
Result<TextSide> simplex_of(const Matrix& captions, std::size_t r);

/// The texts that batches see: corners instead of captions, so that no parameter is spent on what all captions share.
struct CornerTexts {
  Matrix corners;  ///< K x (K - 1); no rows: texts are part of the rows
  Matrix weights;  ///< (K - 1) x d2, of a caption without its mean
  Vector mean;
};
Result<CornerTexts> corner_texts(const ClipOptions& options);

/// The sweeps: d x K weights of the scores.
Result<Matrix> descend(Oracle& oracle, const std::string& label, double rows, const Matrix& allowed,
                       const ClipOptions& options);

}  // namespace eigenveil
