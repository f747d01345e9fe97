// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/forecast/spectrum_model.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// What the user knows about the rows without looking at them. All of it is optional and all of it is public.
struct PublicGuess {
  std::string spectrum;                      ///< file of eigenvalues; empty: eigenvalue i is proportional to 1 / i
  std::optional<std::size_t> expected_rows;  ///< needed where the number of rows is private (add-remove-one)
  double signal_share = 1;                   ///< share of the rows that carry the top components
};

/// Rows that the guess describes, and what of them is asked for. `bound`: that they have once they are about their
/// mean.
GuessedRows guessed_rows(const PublicGuess& guess, std::size_t components, std::optional<std::size_t> sparsity,
                         std::optional<RowBound> bound);

/// Refuses what a forecast would need and has not got, before a row is read. `open`: there will be one.
Status check_guess(const PublicGuess& guess, const Budget& budget, bool open, std::size_t columns);

/// A paper's calibration is that of one method.
Status check_named(bool method, Calibration calibration);

/// The rival with the best forecast, from public facts alone: the number of rows enters only where it is public.
Result<Chosen> choose(const Rivals& rivals, const HeldRows& rows, const Budget& budget, int threads,
                      Observer& observer);

}  // namespace eigenveil
