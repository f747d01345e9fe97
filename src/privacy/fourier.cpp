#include "fourier.hpp"

#include <fftw3.h>

#include <memory>

#include "eigenveil/base/fft_planner.hpp"

namespace eigenveil::loss {
namespace {

struct DestroyPlan {
  void operator()(fftw_plan plan) const {
    const std::lock_guard lock(fft_planner());
    fftw_destroy_plan(plan);
  }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, DestroyPlan>;

fftw_complex* raw(std::vector<std::complex<double>>& values) {
  return reinterpret_cast<fftw_complex*>(values.data());  // the layout std::complex guarantees
}

}  // namespace

std::vector<std::complex<double>> forward_transform(std::vector<double> values) {
  std::vector<std::complex<double>> out(values.size() / 2 + 1);
  Plan plan;
  {
    const std::lock_guard lock(fft_planner());
    plan.reset(fftw_plan_dft_r2c_1d(static_cast<int>(values.size()), values.data(), raw(out),
                                    FFTW_ESTIMATE | FFTW_DESTROY_INPUT));
  }
  fftw_execute(plan.get());
  return out;
}

std::vector<double> backward_transform(std::vector<std::complex<double>> frequencies) {
  std::vector<double> out(2 * (frequencies.size() - 1));
  Plan plan;
  {
    const std::lock_guard lock(fft_planner());
    plan.reset(fftw_plan_dft_c2r_1d(static_cast<int>(out.size()), raw(frequencies), out.data(),
                                    FFTW_ESTIMATE | FFTW_DESTROY_INPUT));
  }
  fftw_execute(plan.get());
  for (double& value : out) value /= static_cast<double>(out.size());
  return out;
}

}  // namespace eigenveil::loss
