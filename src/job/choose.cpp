#include "eigenveil/job/choose.hpp"

#include <fmt/format.h>

namespace eigenveil {

Result<PublicModel> public_model(const PublicGuess& guess, std::optional<std::size_t> rows, std::size_t columns,
                                 double row_bound, const PcaOptions& options) {
  if (!rows) rows = guess.expected_rows;
  if (!rows)
    return usage_error(
        "a forecast needs the number of rows, which is private under add-remove-one: give --expected-rows N, a public "
        "guess");
  if (!(guess.signal_share > 0 && guess.signal_share <= 1))
    return usage_error(fmt::format("--signal-share must lie in (0, 1], but is {}", guess.signal_share));
  PublicModel model{.rows = std::max<std::size_t>(*rows, 1),
                    .spectrum = {},
                    .row_bound = row_bound,
                    .components = std::min(options.components, columns),
                    .signal_share = guess.signal_share,
                    .sparsity = options.sparsity};
  if (guess.spectrum.empty()) {
    const double typical = row_bound / kBoundOverTypicalRow;
    model.spectrum = decay_spectrum(columns, 1) * typical * typical;
    return model;
  }
  auto spectrum = EIGENVEIL_TRY(read_spectrum(guess.spectrum, columns));
  model.spectrum = std::move(spectrum);
  return model;
}

Status check_guess(const PublicGuess& guess, const Budget& budget, bool planned, std::size_t columns) {
  if (planned && budget.adjacency == Adjacency::kAddRemoveOne && !guess.expected_rows)
    return usage_error(
        "--method auto and --rounds auto need the number of rows, which is private under add-remove-one: give "
        "--expected-rows N, a public guess");
  if (!guess.spectrum.empty()) EIGENVEIL_TRY(read_spectrum(guess.spectrum, columns));
  return {};
}

nlohmann::json to_json(const Forecast& forecast) {
  return {{"method", describe(forecast.program)}, {"sin2", forecast.error}, {"lost_variance", forecast.lost}};
}

Result<Selection> select(const std::vector<PcaProgram>& programs, const PublicGuess& guess, const HeldRows& rows,
                         const Budget& budget, int threads, Observer& observer) {
  std::optional<std::size_t> count;
  if (budget.adjacency == Adjacency::kReplaceOne) count = rows.rows();
  const auto model =
      EIGENVEIL_TRY(public_model(guess, count, rows.columns(), rows.lattice().radius, programs.front().options));
  // The forecast runs on rows that are centred and bounded already.
  std::vector<PcaProgram> prepared = programs;
  for (PcaProgram& program : prepared) program.options.preparation = {};
  observer.step("forecasting methods on a public model");
  const auto sample = EIGENVEIL_TRY(Sample::draw(model, threads, 1));
  const auto choice = EIGENVEIL_TRY(choose(sample, prepared, budget, model.rows));
  Selection selection{0, nlohmann::json::array()};
  for (const Forecast& one : choice.all) selection.forecasts.push_back(to_json(one));
  const std::string best = describe(choice.best.program);
  while (describe(prepared[selection.index]) != best) ++selection.index;
  return selection;
}

}  // namespace eigenveil
