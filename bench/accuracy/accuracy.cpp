// SPDX-License-Identifier: Apache-2.0
#include "accuracy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/papers/as_printed.hpp"
#include "eigenveil/query/local_oracle.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil::bench {
namespace {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

}  // namespace

Drawn draw(const SpectrumModel& model, int seed, int threads) {
  const auto s = static_cast<std::uint64_t>(seed);
  const Eigenbasis basis(model, s);
  MemorySource source(draw_rows(model, basis, model.rows, s));
  BoundingOptions options{.bound = must(RowBound::of(model.row_bound))};
  options.threads = threads;
  options.memory_bytes = std::size_t{8} << 30;
  return {must(BoundedRows::read(source, ColumnMap::identity(source.columns()), options)), basis.top()};
}

PcaFit run(PcaProgram program, const std::optional<Budget>& budget, const BoundedRows& rows, int seed,
           Calibration calibration) {
  const Budget used = budget.value_or(bench::budget(1, 1e-6));
  const bool paper = calibration == Calibration::kPaper;
  if (paper) program = papers::as_printed(program, used.epsilon, used.delta);
  PrivacyPlan noisy = paper ? papers::plan(program, used) : must(plan(program, used));
  if (!budget) noisy = test::without_noise(std::move(noisy));
  LocalOracle oracle(rows, reserve_without_ledger(noisy), SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  return must(fit(program, oracle));
}

double error_of(const PcaProgram& program, const std::optional<Budget>& budget, const Drawn& drawn, int seed,
                Calibration calibration) {
  return sin_squared(drawn.truth, run(program, budget, drawn.rows, seed, calibration).pca.components);
}

PcaProgram best_program(const std::vector<PcaProgram>& programs, const Sample& sample, const Budget& budget,
                        std::size_t rows) {
  std::vector<Forecast> forecasts;
  for (const PcaProgram& program : programs)
    forecasts.push_back(must(forecast(*estimator(program), sample, budget, rows)));
  return programs[best_of(forecasts)];
}

std::string number(double value) { return fmt::format("{:.3g}", value); }

double slope(const std::vector<std::pair<double, double>>& points) {
  double mx = 0;
  double my = 0;
  for (const auto& [x, y] : points) {
    mx += std::log(x) / static_cast<double>(points.size());
    my += std::log(y) / static_cast<double>(points.size());
  }
  double xy = 0;
  double xx = 0;
  for (const auto& [x, y] : points) {
    xy += (std::log(x) - mx) * (std::log(y) - my);
    xx += (std::log(x) - mx) * (std::log(x) - mx);
  }
  return xy / xx;
}

Table::Table(std::string name, std::string title, std::vector<std::string> columns) : name_(std::move(name)) {
  fmt::print("\n{}\n\n", title);
  text_ = title + "\n\n";
  add(columns);
  add(std::vector<std::string>(columns.size(), "---"));
}

void Table::add(const std::vector<std::string>& cells) {
  const std::string line = fmt::format("| {} |\n", fmt::join(cells, " | "));
  fmt::print("{}", line);
  std::fflush(stdout);
  text_ += line;
}

void Table::finish(const Setting& setting, const std::vector<LineChart>& charts) {
  if (setting.out.empty()) return;
  std::filesystem::create_directories(setting.out);
  const std::filesystem::path folder = setting.out;
  std::ofstream(folder / (name_ + ".md")) << text_;
  if (!charts.empty()) std::ofstream(folder / (name_ + ".svg")) << line_charts_svg(charts);
  fmt::print("\nwritten: {}/{}.md{}\n", setting.out, name_, charts.empty() ? "" : " and .svg");
}

}  // namespace eigenveil::bench
