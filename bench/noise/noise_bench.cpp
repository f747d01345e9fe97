// SPDX-License-Identifier: Apache-2.0
// Draws of discrete noise on one core, and the accountant on a thousand subsampled steps.
#include <benchmark/benchmark.h>

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/samplers.hpp"

namespace {

using namespace eigenveil;  // NOLINT(google-build-using-namespace)

void discrete_gaussian(benchmark::State& state) {
  const DiscreteGaussian draw((std::uint64_t{1} << state.range(0)) + 12352);
  auto random = SecureRandom::from_kernel();
  for (auto _ : state) benchmark::DoNotOptimize(draw(random));
  state.SetItemsProcessed(state.iterations());
}

void discrete_laplace(benchmark::State& state) {
  const DiscreteLaplace draw(std::uint64_t{1} << 40, std::uint64_t{1} << 36);
  auto random = SecureRandom::from_kernel();
  for (auto _ : state) benchmark::DoNotOptimize(draw(random));
  state.SetItemsProcessed(state.iterations());
}

void account_thousand_steps(benchmark::State& state) {
  const std::vector<PrivacyEvent> events = {{"step", PoissonGaussianEvent{0.01, 1}, 1000}};
  for (auto _ : state) benchmark::DoNotOptimize(*epsilon_of(events, *Delta::of(1e-5)));
}

BENCHMARK(discrete_gaussian)->Arg(40)->Arg(45);
BENCHMARK(discrete_laplace);
BENCHMARK(account_thousand_steps)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
