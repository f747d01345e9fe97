#pragma once

#include <nlohmann/json.hpp>

#include "eigenveil/intake/engine.hpp"
#include "eigenveil/planner/forecast.hpp"

namespace eigenveil {

/// What the user knows about the rows without looking at them. All of it is optional and all of it is public.
struct PublicGuess {
  std::string spectrum;                      ///< file of eigenvalues; empty: eigenvalue i is proportional to 1 / i
  std::optional<std::size_t> expected_rows;  ///< needed where the number of rows is private (add-remove-one)
  double signal_share = 1;                   ///< share of the rows that carry the top components
};

/// What was chosen, and the forecasts that made it so.
struct Selection {
  std::size_t index;         ///< among the programs
  nlohmann::json forecasts;  ///< [{method, sin2, lost_variance}], for the manifest; empty if there was no choice
};

/// Rows that the guess describes: `rows` as far as they are public, of norm at most `row_bound`.
Result<PublicModel> public_model(const PublicGuess& guess, std::optional<std::size_t> rows, std::size_t columns,
                                 double row_bound, const PcaOptions& options);

/// Refuses what the planner would need and has not got, before a row is read. `planned`: it will be asked.
Status check_guess(const PublicGuess& guess, const Budget& budget, bool planned, std::size_t columns);

/// The candidate with the best forecast, from public facts alone: the number of rows enters only where it is public.
Result<Selection> select(const std::vector<PcaProgram>& programs, const PublicGuess& guess, const HeldRows& rows,
                         const Budget& budget, int threads, Observer& observer);

nlohmann::json to_json(const Forecast& forecast);

}  // namespace eigenveil
