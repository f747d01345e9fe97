// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "eigenveil/base/figures.hpp"
#include "eigenveil/forecast/forecaster.hpp"

namespace eigenveil {
namespace {

constexpr double kMostRows = 4096;
constexpr double kMostEpsilon = 64;

/// How far from what was asked a search goes.
struct Reach {
  double least = 1.0 / 64;
  double most;
};

// Not beyond what an epsilon may be.
Reach reach_of(Epsilon epsilon) {
  Reach reach{.most = kMostEpsilon};
  while (!Epsilon::of(epsilon.value() * reach.least)) reach.least *= 2;
  while (!Epsilon::of(epsilon.value() * reach.most)) reach.most /= 2;
  return reach;
}

/// Contenders on the model's rows, whatever their number and the budget.
class Arena {
 public:
  explicit Arena(const ForecastRequest& request) : request_(request), forecaster_(*request.model, request.threads) {}

  std::size_t rows() const { return request_.model->rows(); }
  Epsilon epsilon() const { return request_.budget.epsilon; }
  std::vector<std::string> notes() const { return forecaster_.notes(); }

  Budget budget_for(const Contender& contender, Epsilon epsilon) const {
    Budget budget = request_.budget;
    budget.epsilon = epsilon;
    if (contender.adjacency) budget.adjacency = *contender.adjacency;
    return budget;
  }
  Result<Forecast> run(const Contender& contender, double rows, Epsilon epsilon) {
    const auto count = static_cast<std::size_t>(std::max(1.0, rows));
    return forecaster_(*contender.make(count), budget_for(contender, epsilon), count);
  }
  Result<Forecast> run(const Contender& contender) {
    return forecaster_.timed(*contender.make(rows()), budget_for(contender, epsilon()), rows());
  }

 private:
  const ForecastRequest& request_;
  Forecaster forecaster_;
};

/// A contender's forecasts against rows, or against epsilon: each is made once.
class Trials {
 public:
  using Run = std::function<Result<Forecast>(double x)>;
  Trials(double start, Reach reach, const Forecast& own, Run run) : start_(start), reach_(reach), run_(std::move(run)) {
    known_.emplace(start, own);
  }

  Result<const Forecast*> at(double x) {
    auto known = known_.find(x);
    if (known == known_.end()) known = known_.emplace(x, EIGENVEIL_TRY(run_(x))).first;
    return &known->second;
  }

  /// The least x of the reach where `error` is at most the target, between points of the curve as a power of x. The
  /// points are the same wherever the search starts, so that what is needed does not depend on what is there.
  Result<std::optional<double>> smallest(double target, const std::function<double(const Forecast&)>& error) {
    const auto log_error = [&](double x) -> Result<double> {
      return std::log(std::max(error(*EIGENVEIL_TRY(at(x))), 1e-12));
    };
    const double wanted = std::log(target), least = start_ * reach_.least, most = start_ * reach_.most;
    constexpr double kPerDoubling = 3;
    const auto point = [&](int j) { return std::clamp(std::exp2(j / kPerDoubling), least, most); };
    const auto place = [&](double x) { return std::log2(x) * kPerDoubling; };
    int low = static_cast<int>(std::floor(place(start_))), high = low + 1;
    const double here = EIGENVEIL_TRY(log_error(start_));
    if (here > wanted)
      high = static_cast<int>(std::ceil(place(most)));
    else
      low = static_cast<int>(std::floor(place(least)));
    // Errors fall about as x^-1.5: a first guess, then where a straight line through the last two meets the target.
    std::optional<double> above, below;  // at low and at high, once it is known
    double slope = -1.5 * std::log(2.0) / kPerDoubling, from = place(start_), there = here;
    constexpr int kByLine = 6;  // then by halves, for curves that are no such thing
    for (int step = 0; high - low > 1; ++step) {
      const double met = step < kByLine ? from + (wanted - there) / slope : (low + high) / 2.0;
      const int middle = static_cast<int>(std::lround(std::clamp<double>(met, low + 1, high - 1)));
      const double seen = EIGENVEIL_TRY(log_error(point(middle)));
      if (std::abs(middle - from) > 0.5) slope = std::clamp((seen - there) / (middle - from), 2 * slope, slope / 2);
      from = middle;
      there = seen;
      (seen <= wanted ? high : low) = middle;
      (seen <= wanted ? below : above) = seen;
    }
    if (!above) above = EIGENVEIL_TRY(log_error(point(low)));
    if (*above <= wanted) return std::optional(point(low));
    if (!below) below = EIGENVEIL_TRY(log_error(point(high)));
    if (*below > wanted) return std::optional<double>();
    const double ratio = point(high) / point(low);
    return std::optional(point(low) * std::pow(ratio, (*above - wanted) / std::max(*above - *below, 1e-12)));
  }

  /// Whether x brings `error` down to the target: where it does not, less does not either.
  Result<bool> enough(double x, double target, const std::function<double(const Forecast&)>& error) {
    return error(*EIGENVEIL_TRY(at(x))) <= target;
  }

 private:
  double start_;
  Reach reach_;
  Run run_;
  std::map<double, Forecast> known_;
};

/// The best contender of a method, and what was found out about it.
struct Finalist {
  const Contender* contender;
  std::string method;
  ForecastLine line;
  std::optional<Trials> by_rows = {};
  std::optional<Trials> by_epsilon = {};
};

std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

// Rows that are made, and the sums over them, grow with the columns, of which a few bytes of a schema make many. The
// law of the rows takes next to nothing.
Status check_memory(const ForecastRequest& request) {
  if (request.model->law()) return {};
  const std::size_t columns = request.model->columns(), drawn = request.model->bytes();
  if (drawn <= request.memory) {  // else squares of columns could wrap around
    std::size_t sums = 0;
    for (const Contender& one : request.contenders)
      sums = std::max(sums, one.make(request.model->rows())->bytes(columns, request.threads));
    if (sums <= request.memory - drawn) return {};
  }
  return usage_error(fmt::format(
      "a forecast for {} columns takes more than the {} MiB of `memory`: give more, or ask for fewer columns "
      "(of a schema every value of a category is one)",
      grouped(columns), request.memory >> 20));
}

// Impossible options are refused before anything is simulated.
Status check(const ForecastRequest& request, const Arena& arena) {
  EIGENVEIL_TRY(request.model->check());
  for (const Contender& one : request.contenders) {
    const Budget budget = arena.budget_for(one, request.budget.epsilon);
    const RowsShape shape{request.model->columns(), request.model->rows(), {1, 20}, budget.adjacency};
    EIGENVEIL_TRY(one.make(request.model->rows())->check(shape, budget));
  }
  return check_memory(request);
}

struct Field {
  std::vector<Finalist> finalists;  // one of each method: they are shown
  std::vector<Finalist> others;
};

Result<Field> field_of(const ForecastRequest& request, Arena& arena) {
  Field field;
  auto& [finalists, others] = field;
  for (const Contender& one : request.contenders) {
    const Budget budget = arena.budget_for(one, arena.epsilon());
    const RowsShape shape{request.model->columns(), arena.rows(), {1, 20}, budget.adjacency};
    if (request.contenders.size() > 1 && !one.make(arena.rows())->suits(shape, budget)) continue;
    Finalist next{&one, one.make(arena.rows())->method(), {}};
    next.line.forecast = EIGENVEIL_TRY(arena.run(one));
    const auto rival = std::find_if(finalists.begin(), finalists.end(),
                                    [&](const Finalist& other) { return other.method == next.method; });
    if (rival == finalists.end()) {
      finalists.push_back(std::move(next));
      continue;
    }
    if (next.line.forecast.worth() < rival->line.forecast.worth()) std::swap(*rival, next);
    others.push_back(std::move(next));
  }
  const auto add_trials = [&arena](Finalist& one) {
    const Contender* contender = one.contender;
    one.by_rows.emplace(static_cast<double>(arena.rows()), Reach{.most = kMostRows}, one.line.forecast,
                        [&arena, contender](double x) { return arena.run(*contender, x, arena.epsilon()); });
    one.by_epsilon.emplace(arena.epsilon().value(), reach_of(arena.epsilon()), one.line.forecast,
                           [&arena, contender](double x) -> Result<Forecast> {
                             return arena.run(*contender, static_cast<double>(arena.rows()),
                                              EIGENVEIL_TRY(Epsilon::of(x)));
                           });
  };
  for (Finalist& one : finalists) add_trials(one);
  for (Finalist& one : others) add_trials(one);
  return field;
}

/// What brings an error down to a target.
struct Needs {
  std::optional<std::size_t> rows;
  std::optional<double> epsilon;
};

// Rows to two digits, upwards.
std::size_t rounded_up(double rows) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(rows)) - 1));
  return static_cast<std::size_t>(std::ceil(rows / unit) * unit);
}

Status add_needs(Finalist& one, const ForecastRequest& request) {
  const auto error = [](const Forecast& found) { return found.error; };
  if (const auto rows = EIGENVEIL_TRY(one.by_rows->smallest(request.target_error, error)))
    one.line.rows_needed = rounded_up(*rows);
  one.line.epsilon_needed = EIGENVEIL_TRY(one.by_epsilon->smallest(request.target_error, error));
  return {};
}

// Pool adjacent violators: the closest curve, by squares, that does not rise.
void never_rise(std::vector<std::pair<double, double>>& points) {
  struct Block {
    double sum;
    std::size_t size;
    double mean() const { return sum / static_cast<double>(size); }
  };
  std::vector<Block> blocks;
  for (const auto& point : points) {
    blocks.push_back({point.second, 1});
    while (blocks.size() > 1 && blocks.back().mean() > blocks[blocks.size() - 2].mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().size += last.size;
    }
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (std::size_t j = 0; j < block.size; ++j) points[i++].second = block.mean();
}

// Point by point for all methods, so that each sample is drawn once.
Status add_curves(std::vector<Finalist>& finalists, const Arena& arena) {
  for (int j = -3; j <= 5; ++j) {
    const double x = static_cast<double>(arena.rows()) * std::exp2(j);
    for (Finalist& one : finalists) one.line.error_by_rows.emplace_back(x, EIGENVEIL_TRY(one.by_rows->at(x))->error);
  }
  for (int j = -4; j <= 4; ++j) {
    const double x = arena.epsilon().value() * std::exp2(j);
    if (!Epsilon::of(x)) continue;
    for (Finalist& one : finalists)
      one.line.error_by_epsilon.emplace_back(x, EIGENVEIL_TRY(one.by_epsilon->at(x))->error);
  }
  for (Finalist& one : finalists) {
    never_rise(one.line.error_by_rows);
    never_rise(one.line.error_by_epsilon);
  }
  return {};
}

/// "epsilon 2.4 or 61,000 rows"
std::string in_words(const Needs& needs, const char* unit) {
  if (!needs.rows && !needs.epsilon) return fmt::format("more than 4,096 times the {} or 64 times the epsilon", unit);
  std::string words = needs.epsilon ? fmt::format("epsilon {:.2g}", *needs.epsilon) : "";
  if (needs.rows) words += fmt::format("{}{} {}", words.empty() ? "" : " or ", grouped(*needs.rows), unit);
  return words;
}

/// The least that any method needs: which of them is best depends on how many rows there are. `beyond`: what is there
/// is not enough for the best one, so nothing that is there already is called a need.
Result<Needs> least_needs(Field& field, double target, const Arena& arena, bool beyond,
                          const std::function<double(const Forecast&)>& error) {
  Needs least;
  const auto lower = [](auto& found, const auto& next) {
    if (next && (!found || *next < *found)) found = next;
  };
  // What the least so far is not enough for needs more.
  const auto search = [&](Trials& trials, const auto& least_so_far) -> Result<std::optional<double>> {
    if (least_so_far) {
      const auto x = static_cast<double>(*least_so_far);
      if (!EIGENVEIL_TRY(trials.enough(x, target, error))) return std::optional<double>();
    }
    return trials.smallest(target, error);
  };
  for (auto* some : {&field.finalists, &field.others})
    for (Finalist& one : *some) {
      Needs needs;
      if (const auto rows = EIGENVEIL_TRY(search(*one.by_rows, least.rows))) needs.rows = rounded_up(*rows);
      needs.epsilon = EIGENVEIL_TRY(search(*one.by_epsilon, least.epsilon));
      if (beyond && needs.rows && *needs.rows <= arena.rows()) needs.rows.reset();
      if (beyond && needs.epsilon && *needs.epsilon <= arena.epsilon().value()) needs.epsilon.reset();
      lower(least.rows, needs.rows);
      lower(least.epsilon, needs.epsilon);
    }
  return least;
}

// A component counts as found if the released ones capture all of it but the target.
Result<Outcome> outcome_in_components(Field& field, std::size_t winner, const Arena& arena,
                                      const ForecastRequest& request) {
  const Finalist& best = field.finalists[winner];
  const double target = request.target_error;
  const char* unit = unit_of(request);
  const Vector& missed = best.line.forecast.missed;
  const Eigen::Index K = missed.size();
  Eigen::Index found = 0;
  while (found < K && missed[found] <= target) ++found;
  const auto worst_of = [](Eigen::Index first) {
    return [first](const Forecast& one) { return one.missed.head(first).maxCoeff(); };
  };
  const Needs all = EIGENVEIL_TRY(least_needs(field, target, arena, found < K, worst_of(K)));
  Outcome outcome{.components = found, .rows_needed = all.rows, .epsilon_needed = all.epsilon};
  if (found == K) {
    outcome.sentence = K == 1 ? "You will get the component" : fmt::format("You will get all {} components", K);
    outcome.sentence += fmt::format("; {} would do.", in_words(all, unit));
  } else if (found > 0) {
    outcome.sentence =
        fmt::format("You will get {} component{}; {} need {}.", found, found == 1 ? "" : "s", K, in_words(all, unit));
  } else if (K == 1) {
    outcome.sentence = fmt::format("You will not get the component; it needs {}.", in_words(all, unit));
  } else {
    const Needs first = EIGENVEIL_TRY(least_needs(field, target, arena, true, worst_of(1)));
    outcome.sentence = fmt::format("You will get no component; the first needs {}, all {} need {}.",
                                   in_words(first, unit), K, in_words(all, unit));
  }
  return outcome;
}

// An angle, or a share of what is looked for.
std::string size_in_words(double error, const ErrorUnit& unit) {
  if (unit.key == kSine.key)
    return fmt::format("{:.2g} degrees", std::asin(std::sqrt(std::clamp(error, 0.0, 1.0))) * 180 / M_PI);
  return fmt::format("{:.2g}% of what is there", 100 * error);
}

Outcome outcome_in_error(const ForecastLine& best, const ErrorUnit& unit, const ForecastRequest& request) {
  const Needs needs{best.rows_needed, best.epsilon_needed};
  Outcome outcome{.rows_needed = needs.rows, .epsilon_needed = needs.epsilon};
  outcome.sentence = fmt::format("{} will be off by about {}; for {} you need {}.", request.subject,
                                 size_in_words(best.forecast.error, unit), size_in_words(request.target_error, unit),
                                 in_words(needs, unit_of(request)));
  return outcome;
}

std::vector<std::string> warnings_of(const ForecastRequest& request, const Forecast& best, const Arena& arena) {
  std::vector<std::string> warnings;
  if (best.error > 0.5)
    warnings.push_back(
        fmt::format("The noise will drown the signal: even the best {} ({}) is forecast to have an error of {:.2g}. {}",
                    request.kind_of_contender, best.method, best.error, request.remedies));
  for (std::string& note : arena.notes()) warnings.push_back(std::move(note));
  if (request.budget.delta.value() > 1 / static_cast<double>(request.model->rows()))
    warnings.push_back(
        fmt::format("delta {} is above 1 / {}: a release that publishes one {} in full would satisfy it.",
                    plain(request.budget.delta.value()), unit_of(request), request.people ? "person" : "row"));
  warnings.insert(warnings.end(), request.notes.begin(), request.notes.end());
  return warnings;
}

nlohmann::json outcome_json(const Outcome& outcome) {
  const auto number = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  nlohmann::json object = {{"sentence", outcome.sentence},
                           {"rows_needed", number(outcome.rows_needed)},
                           {"epsilon_needed", number(outcome.epsilon_needed)}};
  if (outcome.components) object["components"] = *outcome.components;
  return object;
}

nlohmann::json line_json(const ForecastLine& line, bool curves) {
  const Forecast& found = line.forecast;
  nlohmann::json one = {{"method", found.method},
                        {"error", found.error},
                        {"seconds", found.seconds},
                        {"sum_bytes", found.bytes},
                        {"noise", nlohmann::json::array()}};
  if (found.lost) one["lost_variance"] = *found.lost;
  one["rows_needed"] = line.rows_needed ? nlohmann::json(*line.rows_needed) : nlohmann::json();
  one["epsilon_needed"] = line.epsilon_needed ? nlohmann::json(*line.epsilon_needed) : nlohmann::json();
  for (const AnswerNoise& noise : found.noise)
    one["noise"].push_back({{"answer", noise.label},
                            {"deviation", noise.deviation},
                            {"unit", noise.search ? "rows" : "per entry, divided by rows"}});
  if (curves) {
    one["error_by_rows"] = line.error_by_rows;
    one["error_by_epsilon"] = line.error_by_epsilon;
  }
  return one;
}

}  // namespace

Result<ForecastReport> make_forecast(const ForecastRequest& request, Observer& observer) {
  Arena arena(request);
  EIGENVEIL_TRY(check(request, arena));
  observer.step("simulating the methods on the public model");
  auto field = EIGENVEIL_TRY(field_of(request, arena));
  std::vector<Finalist>& finalists = field.finalists;
  observer.step("looking for the rows and the epsilon that are needed");
  double done = 0;
  for (Finalist& one : finalists) {
    EIGENVEIL_TRY(add_needs(one, request));
    observer.progress(++done / static_cast<double>(finalists.size()));
  }
  if (request.curves) {
    observer.step("drawing curves");
    EIGENVEIL_TRY(add_curves(finalists, arena));
  }
  observer.step("done");
  std::vector<Forecast> forecasts;
  for (const Finalist& one : finalists) forecasts.push_back(one.line.forecast);
  const Measure& measure = measure_of(request.task);
  ForecastReport report{{}, best_of(forecasts), {}, measure.unit};
  const Finalist& best = finalists[report.best];
  report.outcome = best.line.forecast.missed.size() > 0
                       ? EIGENVEIL_TRY(outcome_in_components(field, report.best, arena, request))
                       : outcome_in_error(best.line, measure.unit, request);
  for (Finalist& one : finalists) {
    one.line.forecast.seconds *= request.rows_each;
    report.lines.push_back(std::move(one.line));
  }
  report.warnings = warnings_of(request, report.winner(), arena);
  return report;
}

nlohmann::json to_json(const ForecastRequest& request, const ForecastReport& report) {
  nlohmann::json object = {{"task", request.task},
                           {"rows", request.model->rows()},
                           {"columns", request.model->columns()},
                           {"epsilon", request.budget.epsilon.value()},
                           {"delta", request.budget.delta.value()},
                           {"target_error", request.target_error},
                           {"best", report.winner().method},
                           {"outcome", outcome_json(report.outcome)},
                           {"warnings", report.warnings},
                           {"methods", nlohmann::json::array()}};
  if (request.people) object["people"] = request.model->rows();
  if (request.rows_each > 1) object["rows_per_person"] = request.rows_each;
  if (!request.facts.is_null()) object.update(request.facts);
  for (const ForecastLine& line : report.lines) object["methods"].push_back(line_json(line, request.curves));
  return object;
}

std::vector<LineChart> forecast_charts(const ForecastRequest& request, const ForecastReport& report) {
  const char* error = report.unit.axis;
  const char* unit = unit_of(request);
  LineChart rows{
      fmt::format("Error against {}, epsilon = {:g}", unit, request.budget.epsilon.value()), unit, error, {}};
  LineChart epsilon{fmt::format("Error against epsilon, {} {}", request.model->rows(), unit), "epsilon", error, {}};
  for (const ForecastLine& line : report.lines) {
    rows.lines.push_back({line.forecast.method, line.error_by_rows});
    epsilon.lines.push_back({line.forecast.method, line.error_by_epsilon});
  }
  const auto add_target = [&](LineChart& chart) {
    const auto& points = chart.lines.front().points;
    chart.lines.push_back(
        {"wanted", {{points.front().first, request.target_error}, {points.back().first, request.target_error}}, true});
  };
  add_target(rows);
  add_target(epsilon);
  return {rows, epsilon};
}

}  // namespace eigenveil
