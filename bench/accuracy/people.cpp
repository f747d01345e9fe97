// SPDX-License-Identifier: Apache-2.0
// People with many rows: the error of a private matrix of second moments, beside the alternatives at the same budget.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include "accuracy.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/query/query.hpp"

namespace eigenveil::bench {
namespace {

using Random = std::mt19937_64;

constexpr std::size_t kCap = 20;  // public: of group privacy, and M of rows:M

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

/// Rows, whose they are, what is to be estimated of them, and the public bound of a row.
struct Visits {
  RowMajorMatrix rows;
  std::vector<int> person;
  std::size_t people;
  Matrix truth;  ///< of an average person
  double bound;
};

std::size_t rows_of_person(Random& random, bool geometric) {
  return geometric ? 1 + static_cast<std::size_t>(std::geometric_distribution<int>(1.0 / 20)(random)) : 20;
}

// Eigenvalues 1 / i; rows of one person are correlated by rho.
Visits generated(std::size_t people, bool geometric, double rho, int seed) {
  constexpr Eigen::Index d = 20;
  Random random(static_cast<std::uint64_t>(seed));
  std::normal_distribution<double> normal;
  const Vector scale =
      Vector::NullaryExpr(d, [](Eigen::Index i) { return std::sqrt(1.0 / (1.0 + static_cast<double>(i))); });
  Visits visits{{}, {}, people, scale.cwiseAbs2().asDiagonal(), 2 * scale.norm()};
  std::vector<Vector> rows;
  for (std::size_t p = 0; p < people; ++p) {
    const Vector own = Vector::NullaryExpr(d, [&](Eigen::Index) { return normal(random); });
    for (std::size_t m = rows_of_person(random, geometric); m > 0; --m) {
      const Vector fresh = Vector::NullaryExpr(d, [&](Eigen::Index) { return normal(random); });
      rows.push_back(scale.cwiseProduct(std::sqrt(rho) * own + std::sqrt(1 - rho) * fresh));
      visits.person.push_back(static_cast<int>(p));
    }
  }
  visits.rows.resize(static_cast<Eigen::Index>(rows.size()), d);
  for (std::size_t i = 0; i < rows.size(); ++i) visits.rows.row(static_cast<Eigen::Index>(i)) = rows[i];
  return visits;
}

/// Covertype: plots in the order of their elevation, dealt out to stands of geometric size; ten numeric columns.
std::optional<Visits> stands(int seed) {
  const char* given = std::getenv("EIGENVEIL_DATA");
  const auto path = std::filesystem::path(given != nullptr ? given : "../shared/data") / "covertype-93k.csv.gz";
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto source = must(open_source(path.string(), {.columns = {"1-10"}, .header = HeaderRule::kYes}));
  std::vector<double> values;
  RawBatch batch;
  do {
    if (const Status read = source->next(batch, 8192); !read) throw std::runtime_error(read.error().message);
    values.insert(values.end(), batch.values.begin(), batch.values.end());
  } while (batch.rows > 0);
  const auto n = static_cast<Eigen::Index>(values.size() / 10);
  const Eigen::Map<const RowMajorMatrix> all(values.data(), n, 10);
  std::vector<Eigen::Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return all(a, 0) < all(b, 0); });
  Random random(static_cast<std::uint64_t>(seed));
  Visits visits{RowMajorMatrix(n, 10), {}, 0, Matrix::Zero(10, 10), std::sqrt(10.0) / 2};
  for (std::size_t i = 0; i < order.size();) {
    const std::size_t m = std::min(rows_of_person(random, true), order.size() - i);
    Matrix own = Matrix::Zero(10, 10);
    for (std::size_t j = 0; j < m; ++j, ++i) {
      const Vector row = all.row(order[i]).transpose().array() - 0.5;
      visits.rows.row(static_cast<Eigen::Index>(i)) = row.transpose();
      visits.person.push_back(static_cast<int>(visits.people));
      own += row * row.transpose() / static_cast<double>(m);
    }
    visits.truth += own;
    ++visits.people;
  }
  visits.truth /= static_cast<double>(visits.people);
  return visits;
}

class Peopled final : public RowSource {
 public:
  explicit Peopled(const Visits& visits) : rows_(visits.rows), person_(visits.person) {}
  const std::vector<std::string>& columns() const override { return rows_.columns(); }
  std::optional<std::size_t> rows_announced() const override { return rows_.rows_announced(); }
  double progress() const override { return rows_.progress(); }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    EIGENVEIL_TRY(rows_.next(batch, max_rows));
    batch.people.clear();
    for (std::size_t i = 0; i < batch.rows; ++i) batch.people.push_back(person_of(std::to_string(person_[at_++]), {}));
    return {};
  }

 private:
  MemorySource rows_;
  const std::vector<int>& person_;
  std::size_t at_ = 0;
};

BoundedRows bounded(const Visits& visits, std::optional<PersonRule> rule, int threads) {
  Peopled source(visits);
  BoundingOptions options{.bound = must(RowBound::of(visits.bound))};
  options.person = std::move(rule);
  options.threads = threads;
  options.memory_bytes = std::size_t{8} << 30;
  return must(BoundedRows::read(source, ColumnMap::identity(source.columns()), options));
}

double error(const Matrix& found, const Visits& visits) { return (found - visits.truth).norm() / visits.truth.norm(); }

/// Each way's error, in the order of the table.
std::vector<double> errors(const Visits& visits, int seed, int threads) {
  auto noise = SecureRandom::insecure(static_cast<std::uint64_t>(seed) + 1000);
  auto chance = std::make_shared<Random>(static_cast<std::uint64_t>(seed));
  const auto below = [chance](std::uint64_t n) { return (*chance)() % n; };
  const auto N = static_cast<double>(visits.people);
  const double mu = gaussian_mu(*Epsilon::of(1), *Delta::of(1e-6));
  const auto released = [&](const BoundedRows& rows, double with) {
    return GaussianMechanism::release(must(exact_sum(Gram{}, rows, Adjacency::kReplaceOne)), with, noise)->value();
  };
  const auto exact = [&](const BoundedRows& rows) {
    const PrivateSum sum = must(exact_sum(Gram{}, rows, Adjacency::kReplaceOne));
    const auto d = static_cast<Eigen::Index>(rows.columns());
    Matrix G(d, d);
    std::size_t at = 0;
    for (Eigen::Index c = 0; c < G.cols(); ++c)
      for (Eigen::Index r = c; r < G.rows(); ++r)
        G(r, c) = G(c, r) = std::ldexp(static_cast<double>(sum.values[at++]), -sum.fraction) * sum.unit;
    return G;
  };
  std::vector<double> found;
  const BoundedRows equal = bounded(visits, PersonRule{}, threads);
  found.push_back(error(released(equal, mu) / N, visits));
  {
    PersonRule rule;
    rule.least_rows = kCap;
    const BoundedRows rows = bounded(visits, rule, threads);
    // As estimators do it: half a percent of mu^2 for what all rows weigh.
    const PrivateSum weight = must(exact_sum(ClassCounts{1}, rows, Adjacency::kReplaceOne));
    const double total = GaussianMechanism::release(weight, std::sqrt(0.005) * mu, noise)->value()(0, 0);
    found.push_back(error(released(rows, std::sqrt(0.995) * mu) / total, visits));
  }
  {
    PersonRule rule;
    rule.most_rows = 1;
    rule.below = below;
    found.push_back(error(released(bounded(visits, rule, threads), mu) / N, visits));
  }
  {
    // Group privacy: at most kCap rows of a person, each counts one, kCap times the noise. What all rows count together
    // is private, and given to it here.
    PersonRule rule;
    rule.most_rows = kCap;
    rule.least_rows = kCap;
    rule.below = below;
    const BoundedRows rows = bounded(visits, rule, threads);
    found.push_back(error(released(rows, mu) / (static_cast<double>(rows.rows()) / kCap), visits));
  }
  const BoundedRows plain = bounded(visits, std::nullopt, threads);
  found.push_back(error(released(plain, mu) / static_cast<double>(plain.rows()), visits));
  found.push_back(error(exact(equal) / N, visits));
  return found;
}

}  // namespace

void people(const Setting& setting) {
  Table table("people", "Relative error (Frobenius) of second moments, epsilon 1, delta 1e-6, replace-one",
              {"people", "rows each", "correlation", "equal", "rows:20", "one row kept", "group privacy, cap 20",
               "row-level (no promise to people)", "equal, without noise"});
  const std::vector<std::string> names = {
      "equal", "rows:20", "one row kept", "group privacy, cap 20", "row-level", "equal, without noise"};
  std::vector<LineChart> charts;
  const auto mean_of = [&](const auto& make) {
    std::vector<double> mean(names.size());
    for (int seed = 0; seed < setting.seeds; ++seed) {
      const auto one = errors(make(seed), seed, setting.threads);
      for (std::size_t i = 0; i < one.size(); ++i) mean[i] += one[i] / setting.seeds;
    }
    return mean;
  };
  const auto add = [&](std::vector<std::string> cells, const std::vector<double>& mean) {
    for (const double x : mean) cells.push_back(number(x));
    table.add(cells);
  };
  for (const bool geometric : {false, true}) {
    LineChart chart{geometric ? "Geometric numbers of rows, mean 20; correlation 0.5" : "20 rows each; correlation 0.5",
                    "people",
                    "relative error",
                    {}};
    for (const std::string& name : names) chart.lines.push_back({name, {}, name == names.back()});
    for (const std::size_t people : {5000U, 20000U})
      for (const double rho : {0.0, 0.5, 0.9}) {
        const auto mean = mean_of([&](int seed) { return generated(people, geometric, rho, seed); });
        add({fmt::format("{}", people), geometric ? "geometric, 20" : "20", fmt::format("{:g}", rho)}, mean);
        for (std::size_t i = 0; rho == 0.5 && i < mean.size(); ++i)
          chart.lines[i].points.emplace_back(static_cast<double>(people), mean[i]);
      }
    charts.push_back(std::move(chart));
  }
  if (const auto real = stands(0)) {
    const auto mean = mean_of([&](int seed) { return *stands(seed); });
    add({fmt::format("{} stands (Covertype)", real->people), "geometric, 20", "neighbours in elevation"}, mean);
  }
  table.finish(setting, charts);
}

}  // namespace eigenveil::bench
