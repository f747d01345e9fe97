// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/public_model.hpp"

namespace eigenveil {

Result<const Sample*> Samples::at(std::size_t rows) {
  if (rows == model_.rows() || model_.one_sample()) {
    if (!own_) own_ = EIGENVEIL_TRY(model_.draw(model_.rows(), threads_));
    return &*own_;
  }
  if (!other_ || other_rows_ != rows) {
    other_ = EIGENVEIL_TRY(model_.draw(rows, threads_));
    other_rows_ = rows;
  }
  return &*other_;
}

}  // namespace eigenveil
