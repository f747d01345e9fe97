// SPDX-License-Identifier: Apache-2.0
// What a federation costs: error against the number of sites, and time and memory of a round over loopback.
// Usage: bench_federation [error] [throughput] [round] [--seeds N] [--out FOLDER]; no names: the first two. `round` is
// the part of `throughput` with four sites.
#include <sys/resource.h>

#include <barrier>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "../accuracy/accuracy.hpp"
#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "tests/support/child.hpp"
#include "tests/support/federation.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil::bench {
namespace {

using federation::Aggregation;
using test::TestSites;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

std::string header(Eigen::Index columns) {
  std::string text;
  for (Eigen::Index j = 0; j < columns; ++j) text += fmt::format("{}c{}", j == 0 ? "" : ",", j);
  return text;
}

// Between -1 and 1: a feature is a column over its largest magnitude, and here one place has the columns as they are.
Schema schema_of(Eigen::Index columns) {
  std::vector<std::string> names;
  for (Eigen::Index j = 0; j < columns; ++j) names.push_back(fmt::format("c{}", j));
  return test::numeric_schema(names, 1);
}

RowOptions rows_of(Eigen::Index columns, double radius) {
  RowOptions options;
  options.bounds = schema_of(columns);
  options.row_bound = *RowBound::of(radius);
  options.center = Center::kNone;
  return options;
}

ChargedOracle charge(federation::CoordinatorOptions options, Eigen::Index columns, double radius,
                     const PrivacyPlan& plan) {
  options.patience_seconds = 600;  // nobody is lost, however busy the machine is
  options.questions = [known = options.questions](const std::string& label, wire::v2::Kind after,
                                                  std::uint32_t classes) -> std::optional<federation::Question> {
    if (label == "apply") return federation::Question{wire::v2::Kind::APPLY};
    if (label == "gram") return federation::Question{wire::v2::Kind::GRAM};
    return known(label, after, classes);
  };
  const auto engine = must(federation::federated_engine(options));
  const RowOptions rows = rows_of(columns, radius);
  Observer silent;
  auto opened = must(open_data(rows));
  auto held = must(engine->hold(rows, opened, RunOptions(), 0, silent));
  PrivacyOptions privacy{*Epsilon::of(900), *Delta::of(1e-6)};
  privacy.calibration = Calibration::kPaper;  // the plan as it is
  const ChargeRequest request{plan, privacy, RunOptions(), std::string(), "benchmark"};
  return must(held->charge(request, silent));
}

// Rows of known components, kept by N sites; the same plan at one place, with local and with secure aggregation.
void error(const Setting& setting) {
  constexpr Eigen::Index n = 20000;
  constexpr Eigen::Index d = 50;
  Table table(
      "federation",
      fmt::format("Federated PCA, n = {}, d = {}, k = 1, gap 5, epsilon 1, delta 1e-6, mean of {} seeds: sin^2, and "
                  "the variance of the noise in a Gram entry over the central one",
                  n, d, setting.seeds),
      {"sites", "noise local", "noise secure", "gram central", "gram local", "gram secure", "sparse central",
       "sparse local", "sparse secure"});
  LineChart chart{"Error against the number of sites", "sites", "sin^2", {}};
  PowerOptions power;
  const Budget spent = budget(1, 1e-6);
  const PcaProgram gram{PcaMethod::kGram, {1, {}, {}}, power, {}};
  const PcaProgram sparse{PcaMethod::kSparsePower, {1, {}, std::size_t{10}}, power, {}};
  std::map<std::string, std::vector<std::pair<double, double>>> curves;
  for (const std::size_t sites : {1, 2, 4, 8}) {
    std::map<std::string, double> mean;
    for (int seed = 0; seed < setting.seeds; ++seed) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      for (const bool few : {false, true}) {
        Vector truth = Vector::Zero(d);
        RowMajorMatrix rows = test::gapped_rows(random, n, d, 5, truth);
        if (few) {  // the same strength along ten columns
          truth.setZero();
          for (Eigen::Index j = 0; j < 10; ++j) truth[5 * j] = 1 / std::sqrt(10.0);
          const double s = 1 / (5.0 + static_cast<double>(d) - 1);
          rows = std::sqrt(s) * test::normal_matrix(random, n, d);
          rows += std::sqrt(4 * s) * test::normal_matrix(random, n, 1).col(0) * truth.transpose();
        }
        std::vector<std::string> text;
        for (Eigen::Index i = 0; i < n; ++i) text.push_back(test::csv_line(rows.row(i)));
        const PcaProgram& program = few ? sparse : gram;
        const PrivacyPlan planned = must(plan(program, spent));
        const auto add = [&](const std::string& name, Oracle& oracle) {
          const Matrix V = must(fit(program, oracle)).pca.components;
          mean[name] += test::sin_squared(truth, V) / setting.seeds;
        };
        const std::string method = few ? "sparse " : "gram ";
        auto central = test::oracle_over(rows, 1.5, planned, 16 * static_cast<std::uint64_t>(seed) + sites);
        add(method + "central", central);
        for (const auto& [aggregation, name] :
             {std::pair{Aggregation::kLocal, "local"}, std::pair{Aggregation::kSecure, "secure"}}) {
          if (sites == 1 && aggregation == Aggregation::kSecure) continue;  // nobody to hide among
          TestSites holders(sites, header(d), schema_of(d), text);
          auto charged = charge(holders.coordinator(aggregation, "pca"), d, 1.5, planned);
          if (few) {
            add(method + name, *charged.oracle);
            continue;
          }
          // The same answer serves the fit and the measurement of its noise.
          const std::string& label = planned.events[0].label;
          const Matrix noisy = must(charged.oracle->ask(label, Gram{})).value();
          auto silent = test::oracle_over(rows, 1.5, test::without_noise(planned), 0);
          const Matrix noise = noisy - must(silent.ask(label, Gram{})).value();
          double square = 0;
          for (Eigen::Index j = 0; j < d; ++j) square += noise.col(j).tail(d - 1 - j).squaredNorm();
          auto one_place = test::oracle_over(rows, 1.5, planned, 0);
          const double sigma = must(one_place.ask(label, Gram{})).deviation();
          mean[std::string("noise ") + name] +=
              square / (static_cast<double>(d * (d - 1)) / 2) / (sigma * sigma) / setting.seeds;
          const Matrix V = must(top_eigenpairs(noisy, 1)).vectors;
          mean[method + name] += test::sin_squared(truth, V) / setting.seeds;
        }
      }
    }
    std::vector<std::string> cells = {std::to_string(sites)};
    for (const char* name : {"noise local", "noise secure", "gram central", "gram local", "gram secure",
                             "sparse central", "sparse local", "sparse secure"}) {
      cells.push_back(mean.contains(name) ? number(mean[name]) : "-");
      if (mean.contains(name) && !std::string_view(name).starts_with("noise"))
        curves[name].emplace_back(static_cast<double>(sites), mean[name]);
    }
    table.add(cells);
  }
  for (auto& [name, points] : curves) chart.lines.push_back({name, points});
  table.finish(setting, {chart});
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

long resident_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A site as a process of its own: this program again.
constexpr std::string_view kSite = "--site";
std::string folder_of(const federation::SiteConfig& config) {
  return std::filesystem::path(config.ledger).parent_path().string();
}
void run_apart(const federation::SiteConfig& config) {
  std::vector<std::string> arguments = {"/proc/self/exe",
                                        std::string(kSite),
                                        config.identity.party.name,
                                        test::Certificates::shared().folder(),
                                        folder_of(config),
                                        config.coordinator,
                                        std::to_string(config.schema.columns.size())};
  for (const auto& [name, pin] : config.peers) arguments.push_back(name);
  test::Child site(arguments);
  (void)site.wait();
}
void be_a_site(int count, char** arguments) {
  const std::string certificates = arguments[1];
  const auto pin = [&](const std::string& name, federation::Role role) {
    return test::identity_of(certificates, name, role).party.key_hash;
  };
  const std::string name = arguments[0];
  const std::string folder = arguments[2];
  federation::SiteConfig config;
  config.coordinator_name = "coordinator";
  config.coordinator_key = pin("coordinator", federation::Role::kCoordinator);
  config.identity = test::identity_of(certificates, name, federation::Role::kSite);
  config.data = folder + "/" + name + ".csv";
  config.ledger = folder + "/" + name + ".db";
  config.state = folder + "/state-" + name;
  config.coordinator = arguments[3];
  config.schema = schema_of(std::stol(arguments[4]));
  for (int i = 5; i < count; ++i) config.peers[arguments[i]] = pin(arguments[i], federation::Role::kSite);
  test::let_everything_through(config);
  test::take_part(config);
}

// Few rows, so that a round is all protocol: messages, TLS, durable answers, journal.
void round_of(std::size_t sites, Aggregation aggregation) {
  constexpr Eigen::Index d = 1000;
  constexpr int kRounds = 200;
  std::mt19937_64 random(1);
  std::vector<std::string> text;
  for (std::size_t i = 0; i < sites; ++i) text.push_back(test::csv_line(test::normal_matrix(random, 1, d).row(0)));
  TestSites holders(sites, header(d), schema_of(d), text, run_apart);
  const PrivacyPlan plan(Adjacency::kReplaceOne, {{"apply", GaussianEvent{0.1}, kRounds}});
  auto charged = charge(holders.coordinator(aggregation, "pca"), d, 50, plan);
  const Apply query{must(Directions::quantise(Matrix::Identity(d, 10)))};
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kRounds; ++i) must(charged.oracle->ask("apply", query));
  });
  // The same answers of one row each, computed and noised by as many threads, round by round: what is not the
  // federation's doing.
  std::vector<std::unique_ptr<LocalOracle>> alone;
  for (std::size_t i = 0; i < sites; ++i)
    alone.emplace_back(new LocalOracle(test::oracle_over(test::normal_matrix(random, 1, d), 50, plan, i, 1)));
  std::barrier round(static_cast<std::ptrdiff_t>(sites));
  const double computing = seconds_of([&] {
    std::vector<std::jthread> threads;
    for (auto& oracle : alone)
      threads.emplace_back([&] {
        for (int i = 0; i < kRounds; ++i) {
          must(oracle->ask("apply", query));
          round.arrive_and_wait();
        }
      });
  });
  fmt::print("| Apply, d = 1000, k = 10, {} | {} | {:.2f} | {:.2f} | {:.2f} |\n",
             aggregation == Aggregation::kLocal ? "local" : "secure", sites, 1000 * seconds / kRounds,
             1000 * computing / kRounds, 1000 * (seconds - computing) / kRounds);
}

void large_answer() {
  std::mt19937_64 random(1);
  constexpr Eigen::Index d = 2000;
  std::vector<std::string> text;
  for (int i = 0; i < 4; ++i) text.push_back(test::csv_line(test::normal_matrix(random, 1, d).row(0)));
  TestSites holders(4, header(d), schema_of(d), text, run_apart);
  auto charged = charge(holders.coordinator(Aggregation::kSecure, "pca"), d, 50,
                        PrivacyPlan(Adjacency::kReplaceOne, {{"gram", GaussianEvent{0.1}, 1}}));
  const long before = resident_kilobytes();
  const double seconds = seconds_of([&] { must(charged.oracle->ask("gram", Gram{})); });
  fmt::print(
      "| Gram, d = 2000 (32 MB a site), secure | 4 | {:.0f} | | |\nThe coordinator grew by {} MB; its answer, "
      "a matrix of doubles, is 32 of them.\n",
      1000 * seconds, (resident_kilobytes() - before) / 1024);
}

void rounds(bool few_sites) {
  fmt::print("\n| a round | sites | milliseconds | computing alone | added |\n| --- | --- | --- | --- | --- |\n");
  round_of(4, Aggregation::kLocal);
  round_of(4, Aggregation::kSecure);
  if (few_sites) return;
  round_of(50, Aggregation::kSecure);
  large_answer();
}

}  // namespace
}  // namespace eigenveil::bench

int main(int argc, char** argv) {
  if (argc > 6 && argv[1] == eigenveil::bench::kSite) {
    eigenveil::bench::be_a_site(argc - 2, argv + 2);
    return 0;
  }
  std::set<std::string_view> wanted;
  eigenveil::bench::Setting setting{"", 5, 1};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seeds" && i + 1 < argc)
      setting.seeds = std::atoi(argv[++i]);
    else if (argument == "--out" && i + 1 < argc)
      setting.out = argv[++i];
    else
      wanted.insert(argument);
  }
  if (wanted.empty()) wanted = {"error", "throughput"};
  if (wanted.contains("error")) eigenveil::bench::error(setting);
  if (wanted.contains("throughput")) eigenveil::bench::rounds(false);
  if (wanted.contains("round")) eigenveil::bench::rounds(true);
}
