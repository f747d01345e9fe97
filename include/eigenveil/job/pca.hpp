#pragma once

#include "eigenveil/job/choose.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// Private PCA from a data file to a released model.
struct PcaJob {
  FitJob fit;
  std::size_t components;
  std::optional<PcaMethod> method = PcaMethod::kGram;  ///< none: the planner chooses
  std::optional<std::size_t> sparsity = {};            ///< gram, sparse-power (which needs it)
  PowerOptions power = {};                             ///< the power methods; `power` itself takes no filter
  bool choose_rounds = false;                          ///< the planner chooses their number
  SpikedOptions spiked = {};                           ///< spiked
  PublicGuess guess = {};                              ///< for the planner
};

/// Model "pca": components (K x d), eigenvalues (K), mean, offset and scale (d); spiked also noise_variance.
Study study(PcaJob job);

}  // namespace eigenveil
