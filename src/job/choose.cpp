// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/choose.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/forecast/forecaster.hpp"
#include "eigenveil/forecast/measure.hpp"

namespace eigenveil {
namespace {

Result<SpectrumModel> spectrum_model(const PublicGuess& guess, const RowsShape& shape, std::size_t components,
                                     std::optional<std::size_t> sparsity) {
  const std::optional<std::size_t> rows = shape.rows ? shape.rows : guess.expected_rows;
  if (!rows)
    return usage_error(
        "a forecast needs the number of rows, which is private under add-remove-one: give `expected_rows` N, a public "
        "guess");
  if (!(guess.signal_share > 0 && guess.signal_share <= 1))
    return usage_error(fmt::format("`signal_share` must lie in (0, 1], but is {}", guess.signal_share));
  SpectrumModel model{.rows = std::max<std::size_t>(*rows, 1),
                      .spectrum = {},
                      .row_bound = shape.lattice.radius,
                      .components = std::min(components, shape.columns),
                      .signal_share = guess.signal_share,
                      .sparsity = sparsity};
  const double typical = model.row_bound / kBoundOverTypicalRow;
  model.spectrum =
      EIGENVEIL_TRY(guess.spectrum.empty() ? Result<Vector>(decay_spectrum(shape.columns, 1) * typical * typical)
                                           : read_spectrum(guess.spectrum, shape.columns));
  return model;
}

nlohmann::json to_json(const Forecast& forecast, const ErrorUnit& unit) {
  nlohmann::json object = {{"method", forecast.method}, {unit.key, forecast.error}};
  if (forecast.lost) object["lost_variance"] = *forecast.lost;
  return object;
}

}  // namespace

GuessedRows guessed_rows(const PublicGuess& guess, std::size_t components, std::optional<std::size_t> sparsity,
                         std::optional<RowBound> bound) {
  return [=](RowsShape shape) -> Result<std::unique_ptr<PublicModel>> {
    if (bound) shape.lattice.radius = std::min(shape.lattice.radius, bound->value());
    return public_model(EIGENVEIL_TRY(spectrum_model(guess, shape, components, sparsity)));
  };
}

Status check_guess(const PublicGuess& guess, const Budget& budget, bool open, std::size_t columns) {
  if (open && budget.adjacency == Adjacency::kAddRemoveOne && !guess.expected_rows)
    return usage_error(
        "`method` auto and `rounds` auto need the number of rows, which is private under add-remove-one: give "
        "`expected_rows` N, a public guess");
  if (!guess.spectrum.empty()) EIGENVEIL_TRY(read_spectrum(guess.spectrum, columns));
  return {};
}

Status check_named(bool method, Calibration calibration) {
  if (method || calibration == Calibration::kTight) return {};
  return usage_error("`calibration` paper needs a `method`: each paper has its own");
}

Result<Chosen> choose(const Rivals& rivals, const HeldRows& rows, const Budget& budget, int threads,
                      Observer& observer) {
  RowsShape shape{rows.columns(), {}, rows.lattice(), budget.adjacency};
  if (budget.adjacency == Adjacency::kReplaceOne) shape.rows = rows.rows();
  const auto model = EIGENVEIL_TRY(rivals.guess(shape));
  observer.step("forecasting methods on a public model");
  Forecaster forecaster(*model, threads);
  shape.rows = model->rows();
  std::vector<Forecast> all;
  std::vector<std::size_t> index;  // of the rivals that `all` is about
  for (std::size_t i = 0; i < rivals.prepared.size(); ++i) {
    if (!rivals.prepared[i]->suits(shape, budget)) continue;
    all.push_back(EIGENVEIL_TRY(forecaster.glance(*rivals.prepared[i], budget, model->rows())));
    index.push_back(i);
  }
  // A glance at the law of the rows tells much worse from better, and the mean of some draws what is close.
  constexpr double kClose = 2;
  const double least = all[best_of(all)].worth();
  const auto close = [&](const Forecast& one) { return one.worth() <= kClose * least; };
  if (std::count_if(all.begin(), all.end(), close) > 1)
    for (std::size_t i = 0; i < all.size(); ++i)
      if (close(all[i]) && !all[i].passes.empty())
        all[i] = EIGENVEIL_TRY(forecaster(*rivals.prepared[index[i]], budget, model->rows()));
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < all.size(); ++i)
    list.push_back(to_json(all[i], measure_of(rivals.prepared[index[i]]->name()).unit));
  const std::size_t best = best_of(all);
  return Chosen{index[best], {{"chosen", all[best].method}, {"forecasts", std::move(list)}}, all[best].error};
}

}  // namespace eigenveil
