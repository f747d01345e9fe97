// SPDX-License-Identifier: Apache-2.0
// Real data: how much of the variance that the best k components capture do the private ones capture?
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "accuracy.hpp"
#include "eigenveil/estimators/pca/pilot.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::bench {
namespace {

struct DataSet {
  std::string name;
  std::string file;  // what to look for
  RowOptions rows;
  std::vector<std::size_t> components;
};

// The folder of shared data sets, if there is one.
std::filesystem::path shared() {
  const char* given = std::getenv("EIGENVEIL_DATA");
  return given != nullptr ? given : "../shared/data";
}

// The matches of the Dota2 archive, unpacked.
std::string unpacked_dota() {
  const auto archive = shared() / "dota2Dataset.zip";
  if (!std::filesystem::exists(archive)) return "";
  const auto folder = std::filesystem::temp_directory_path();
  const std::string command = fmt::format("unzip -qo '{}' dota2Train.csv -d '{}'", archive.string(), folder.string());
  return std::system(command.c_str()) == 0 ? (folder / "dota2Train.csv").string() : "";
}

// The columns of the census whose values its documents list.
Schema adult_schema() {
  const auto number = [](std::string name, double low, double high) {
    return ColumnSpec{std::move(name), NumericColumn{low, high}};
  };
  const auto one_of = [](std::string name, std::vector<std::string> values) {
    values.emplace_back("elsewhere");
    const std::size_t last = values.size() - 1;
    return ColumnSpec{std::move(name), CategoricalColumn{std::move(values), last}};
  };
  Schema schema;
  schema.columns = {
      number("1", 17, 90),
      one_of("2",
             {"Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay"}),
      number("5", 1, 16),
      one_of("6", {"Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent"}),
      one_of("8", {"Wife", "Own-child", "Husband", "Not-in-family", "Other-relative"}),
      one_of("9", {"White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Black"}),
      one_of("10", {"Female"}),
      number("11", 0, 1e5),
      number("12", 0, 5000),
      number("13", 0, 99),
      one_of("15", {">50K"})};
  schema.header = HeaderRule::kNo;
  schema.fields = 15;
  return schema;
}

// What is public: the range of a column, and nothing of how long rows are.
std::vector<DataSet> data_sets() {
  DataSet fashion{"Fashion-MNIST", "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", {}, {1, 3, 10}};
  fashion.rows.ranges = {"0:255"};
  // 8 x 8 images of digits, with the digit in the last column
  DataSet digits{"digits", "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", {}, {5}};
  digits.rows.source.columns = {"1-64"};
  digits.rows.source.header = HeaderRule::kNo;
  digits.rows.ranges = {"0:16"};
  // Matches: a label, three settings of the match, and 113 heroes that are picked by a side (-1, 1) or not (0).
  DataSet dota{"Dota2", unpacked_dota(), {}, {5}};
  dota.rows.source.columns = {"5-117"};
  dota.rows.source.header = HeaderRule::kNo;
  dota.rows.ranges = {"-1:1"};
  DataSet cover{"Covertype", (shared() / "covertype-93k.csv.gz").string(), {}, {5}};
  cover.rows.source.columns = {"1-54"};
  cover.rows.source.header = HeaderRule::kYes;
  cover.rows.ranges = {"0:1"};
  DataSet adult{"Adult", (shared() / "adult.data").string(), {}, {5}};
  adult.rows.bounds = adult_schema();
  for (DataSet* set : {&fashion, &digits, &dota, &cover, &adult}) set->rows.data = set->file;
  return {fashion, digits, dota, cover, adult};
}

// tr(V^T S V), S the exact second moment about the exact mean
double captured(const Matrix& V, const Matrix& S) { return (S * V).cwiseProduct(V).sum(); }

// Exact moments of the rows that the estimators see, for the yardstick alone.
struct Moments {
  Matrix covariance;
  double best;
};

Moments moments_of(const BoundedRows& rows, std::size_t k) {
  PcaOptions options{.components = k};
  options.preparation.mean = MeanBy::kOnce;
  const CovarianceProgram whole{PcaMethod::kGram, options.preparation};
  PrivacyPlan silent = *plan(whole, budget(1, 1e-6));
  for (PrivacyEvent& event : silent.events) event.mechanism = GaussianEvent{0x1p27};
  LocalOracle oracle(rows, reserve_without_ledger(silent), SecureRandom::insecure(1));
  const auto exact = fit(whole, oracle);
  if (!exact) throw std::runtime_error(exact.error().message);
  return {exact->dense(), exact->pca.eigenvalues.head(static_cast<Eigen::Index>(k)).sum()};
}

}  // namespace

void real_data(const Setting& setting) {
  const std::vector<double> epsilons = {0.25, 0.5, 1, 2, 4};
  Table table("real",
              fmt::format("Variance that k private components lose of what the k best capture, delta = 1e-6, known of "
                          "rows are the ranges of their columns alone, mean (worst) of {} runs",
                          setting.seeds),
              {"data", "method", "eps 0.25", "0.5", "1", "2", "4"});
  std::vector<LineChart> charts;
  int missing = 0;
  for (const DataSet& set : data_sets()) {
    if (set.file.empty() || !std::filesystem::exists(set.file)) {
      fmt::print("SKIPPED: {} is not on this machine\n", set.name);
      ++missing;
      continue;
    }
    Observer silent;
    RunOptions run_options;
    run_options.threads = setting.threads;
    run_options.memory = std::size_t{6} << 30;
    auto rows = bound_rows(set.rows, run_options, 0, silent);
    if (!rows) throw std::runtime_error(rows.error().message);
    const std::size_t d = rows->columns();
    for (const std::size_t k : set.components) {
      const Moments exact = moments_of(*rows, k);
      PcaOptions found{.components = k};
      found.preparation = {.mean = MeanBy::kRefined, .bound_by = BoundBy::kDirections, .directions = k};
      PcaOptions stated = found;
      stated.preparation.bound_by = BoundBy::kStated;
      const PcaMethod by_itself = worth_a_pilot(k, d) ? PcaMethod::kPilot : PcaMethod::kGram;
      const std::vector<std::pair<std::string, PcaProgram>> programs = {
          {"auto", {by_itself, found}},
          {"gram", {PcaMethod::kGram, found}},
          {"gram, bound of the ranges", {PcaMethod::kGram, stated}},
          {"sphere", {PcaMethod::kSphere, found}},
          {"adaptive-power", {PcaMethod::kAdaptivePower, found}}};
      const std::string name = fmt::format("{}, {} x {}, k = {}", set.name, rows->rows(), d, k);
      LineChart chart{name, "epsilon", "share of the best variance that is lost", {}, true, true};
      for (const auto& [method, program] : programs) {
        std::vector<std::string> cells = {name, method};
        ChartLine line{method, {}};
        for (const double epsilon : epsilons) {
          double mean = 0, worst = 0;
          for (int seed = 0; seed < setting.seeds; ++seed) {
            const PcaFit done = run(program, budget(epsilon, 1e-6), *rows, seed);
            const double lost = 1 - captured(done.pca.components, exact.covariance) / exact.best;
            mean += lost / setting.seeds;
            worst = std::max(worst, lost);
          }
          cells.push_back(fmt::format("{} ({})", number(mean), number(worst)));
          line.points.emplace_back(epsilon, std::max(mean, 1e-9));
        }
        table.add(cells);
        chart.lines.push_back(line);
      }
      charts.push_back(chart);
    }
  }
  if (missing > 0) fmt::print("\n{} of 5 data sets skipped\n", missing);
  table.finish(setting, charts);
}

}  // namespace eigenveil::bench
