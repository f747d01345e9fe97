// SPDX-License-Identifier: Apache-2.0
// The spiked model (002): error of the covariance in three norms against the paper's rate; strict against model.
#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "accuracy.hpp"
#include "eigenveil/papers/as_printed.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::bench {
namespace {

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-6;

struct Norms {
  double spectral = 0;
  double frobenius = 0;
  double nuclear = 0;
};

Norms norms_of(const Matrix& difference) {
  const Vector values =
      Eigen::SelfAdjointEigenSolver<Matrix>(difference, Eigen::EigenvaluesOnly).eigenvalues().cwiseAbs();
  return {values.maxCoeff(), values.norm(), values.sum()};
}

Norms mean_error(const SpikedOptions& options, Calibration calibration, const SpectrumModel& model,
                 const Setting& setting) {
  Norms mean;
  const CovarianceProgram program{PcaMethod::kSpiked, {}, options};
  const Budget spent = budget(kEpsilon, kDelta);
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const auto s = static_cast<std::uint64_t>(seed);
    const Drawn drawn = draw(model, seed, setting.threads);
    const auto planned = calibration == Calibration::kPaper
                             ? Result<PrivacyPlan>(papers::plan(pca_program(program), spent))
                             : plan(program, spent);
    if (!planned) throw std::runtime_error(planned.error().message);
    LocalOracle oracle(drawn.rows, reserve_without_ledger(*planned), SecureRandom::insecure(s));
    const auto done = fit(program, oracle);
    if (!done) throw std::runtime_error(done.error().message);
    const Norms one = norms_of(done->dense() - Eigenbasis(model, s).covariance(model.spectrum));
    mean.spectral += one.spectral / setting.seeds;
    mean.frobenius += one.frobenius / setting.seeds;
    mean.nuclear += one.nuclear / setting.seeds;
  }
  return mean;
}

// Where U comes from, by the forecast.
SpikedOptions strict_options(const SpectrumModel& model, std::size_t r, const Setting& setting) {
  std::vector<PcaProgram> programs;
  for (const std::size_t rounds : {0, 4, 8}) {
    PcaProgram program{PcaMethod::kSpiked, {.components = r}};
    program.spiked.rank = r;
    if (rounds > 0) {
      program.spiked.subspace = Subspace::kAdaptivePower;
      program.spiked.power.rounds = rounds;
    }
    programs.push_back(program);
  }
  const auto sample = draw_sample(model, setting.threads, 1000);
  return best_program(programs, *sample, budget(kEpsilon, kDelta), model.rows).spiked;
}

}  // namespace

void spiked(const Setting& all) {
  const Setting setting{all.out, std::min(all.seeds, 4), all.threads};  // dense eigenvalues of differences take long
  Table table(
      "spiked",
      fmt::format("Spiked covariance, sigma^2 = 1, all spikes equal (no gap between them), epsilon = {}, delta = "
                  "{:g}; mean over {} seeds; model with simulated sensitivities, the true lambda and sigma^2",
                  kEpsilon, kDelta, setting.seeds),
      {"p / n", "n, p, r, lambda", "strict: spectral", "Frobenius", "nuclear", "model: spectral", "Frobenius",
       "nuclear", "model, paper: spectral", "rate of 002", "strict / rate", "strict / model"});
  LineChart chart{"Spectral error of the covariance over the rate of 002", "r", "error / rate", {}};
  struct Size {
    std::size_t n;
    std::size_t p;
    double lambda;
  };
  for (const auto& [n, p, lambda] : {Size{3000, 300, 20}, Size{1000, 1000, 200}, Size{200, 1000, 1000}}) {
    ChartLine strict_line{fmt::format("strict, p/n = {:g}", static_cast<double>(p) / static_cast<double>(n)), {}};
    ChartLine model_line{fmt::format("model, p/n = {:g}", static_cast<double>(p) / static_cast<double>(n)), {}};
    for (const std::size_t r : {1, 3, 10}) {
      Vector spectrum = Vector::Ones(static_cast<Eigen::Index>(p));
      spectrum.head(static_cast<Eigen::Index>(r)).array() += lambda;
      const SpectrumModel model{n, spectrum, 1.2 * std::sqrt(spectrum.sum()), r};
      const SpikedOptions strict = strict_options(model, r, setting);
      SpikedOptions based;
      based.rank = r;
      based.guarantee = Guarantee::kModel;
      based.noise_variance = 1;
      based.spike = lambda;
      const Norms a = mean_error(strict, Calibration::kTight, model, setting);
      const Norms b = mean_error(based, Calibration::kTight, model, setting);
      const Norms c = mean_error(based, Calibration::kPaper, model, setting);
      const double expected = spiked_rate(static_cast<double>(n), static_cast<double>(p), static_cast<double>(r),
                                          lambda, 1, *Epsilon::of(kEpsilon), *Delta::of(kDelta));
      table.add({number(static_cast<double>(p) / static_cast<double>(n)),
                 fmt::format("{}, {}, {}, {}", n, p, r, lambda), number(a.spectral), number(a.frobenius),
                 number(a.nuclear), number(b.spectral), number(b.frobenius), number(b.nuclear), number(c.spectral),
                 number(expected), number(a.spectral / expected), number(a.spectral / b.spectral)});
      strict_line.points.emplace_back(r, a.spectral / expected);
      model_line.points.emplace_back(r, b.spectral / expected);
    }
    chart.lines.push_back(strict_line);
    chart.lines.push_back(model_line);
  }
  table.finish(setting, {chart});
}

}  // namespace eigenveil::bench
