// SPDX-License-Identifier: Apache-2.0
// Real data: how much of the variance that the best k components capture do the private ones capture?
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "accuracy.hpp"
#include "eigenveil/intake/rows.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::bench {
namespace {

struct DataSet {
  std::string name;
  std::string file;  // what to look for
  RowOptions rows;
  std::size_t k;
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

std::vector<DataSet> data_sets() {
  DataSet fashion{"Fashion-MNIST", "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", {}, 10};
  fashion.rows.ranges = {"0:255"};
  fashion.rows.row_bound = *RowBound::of(20);
  // Matches: a label, three settings of the match, and 113 heroes that are picked by a side (-1, 1) or not (0). Ten
  // are.
  DataSet dota{"Dota2", unpacked_dota(), {}, 5};
  dota.rows.source.columns = {"5-117"};
  dota.rows.source.header = HeaderRule::kNo;
  dota.rows.ranges = {"-1:1"};
  dota.rows.row_bound = *RowBound::of(3.2);
  DataSet cover{"Covertype", (shared() / "covertype-93k.csv.gz").string(), {}, 5};
  cover.rows.source.columns = {"1-54"};
  cover.rows.source.header = HeaderRule::kYes;
  cover.rows.ranges = {"0:1"};
  cover.rows.row_bound = *RowBound::of(4);
  for (DataSet* set : {&fashion, &dota, &cover}) {
    set->rows.data = set->file;
    set->rows.center = Center::kPrivate;
  }
  return {fashion, dota, cover};
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
  for (PrivacyEvent& event : silent.events) event.mechanism = GaussianEvent{0x1p55};
  LocalOracle oracle(rows, reserve_without_ledger(silent), SecureRandom::insecure(1));
  const auto exact = fit(whole, oracle);
  return {exact->dense(), exact->pca.eigenvalues.head(static_cast<Eigen::Index>(k)).sum()};
}

}  // namespace

void real_data(const Setting& setting) {
  const std::vector<double> epsilons = {0.25, 0.5, 1, 2, 4};
  Table table(
      "real",
      "Variance captured by k private components over that of the k best, delta = 1e-6, private mean, mean of 3 runs",
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
    const Moments exact = moments_of(*rows, set.k);
    const std::size_t d = rows->columns();
    PreparationOptions preparation;
    if (set.rows.center == Center::kPrivate) preparation.mean = MeanBy::kOnce;
    preparation.bound = set.rows.row_bound;
    PcaOptions options{set.k, preparation, {}};
    PcaOptions sparse = options;
    sparse.sparsity = d / 2;
    PcaProgram spiked{PcaMethod::kSpiked, options};
    spiked.spiked.rank = set.k;
    const std::vector<std::pair<std::string, PcaProgram>> programs = {
        {"gram", {PcaMethod::kGram, options}},
        {"power, 4 rounds", {PcaMethod::kPower, options, {.rounds = 4}}},
        {"adaptive-power, 4 rounds", {PcaMethod::kAdaptivePower, options, {.rounds = 4}}},
        {fmt::format("sparse-power, {} loadings", d / 2), {PcaMethod::kSparsePower, sparse, {.rounds = 4}}},
        {"spiked", spiked}};
    LineChart chart{fmt::format("{}, {} rows, {} columns, k = {}", set.name, rows->rows(), d, set.k),
                    "epsilon",
                    "share of the best variance",
                    {},
                    true,
                    false};
    for (const auto& [name, program] : programs) {
      std::vector<std::string> cells = {fmt::format("{}, k = {}", set.name, set.k), name};
      ChartLine line{name, {}};
      for (const double epsilon : epsilons) {
        double mean = 0;
        for (int seed = 0; seed < 3; ++seed) {
          const PcaFit done = run(program, budget(epsilon, 1e-6), *rows, seed);
          mean += captured(done.pca.components, exact.covariance) / exact.best / 3;
        }
        cells.push_back(fmt::format("{:.3f}", mean));
        line.points.emplace_back(epsilon, mean);
      }
      table.add(cells);
      chart.lines.push_back(line);
    }
    charts.push_back(chart);
  }
  if (missing > 0) fmt::print("\n{} of 3 data sets skipped\n", missing);
  table.finish(setting, charts);
}

}  // namespace eigenveil::bench
