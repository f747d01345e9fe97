// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/forecast/spectrum_model.hpp"
#include "spectrum_law.hpp"

namespace eigenveil {
namespace {

// 1 - tr(V^T Sigma V) / (sum of the top eigenvalues)
double lost_variance(const Vector& spectrum, const Eigenbasis& basis, const Matrix& V) {
  const double captured = spectrum.dot(basis.coordinates(V).rowwise().squaredNorm());
  return std::max(0.0, 1 - captured / spectrum.head(V.cols()).sum());
}

// Three times the columns, so that the second moment of half of the rows can be set too; at most 128 MB of numbers, or
// 200 rows if that is more.
std::size_t sample_rows(std::size_t rows, std::size_t columns) {
  constexpr std::size_t kRows = 3000;
  constexpr std::size_t kNumbers = std::size_t{1} << 24;
  const std::size_t wanted = std::min(std::max(kRows, 3 * columns), std::max<std::size_t>(200, kNumbers / columns));
  return std::min(rows, wanted);
}

Result<Sample> draw_spectrum(const SpectrumModel& model, int threads, std::uint64_t seed, std::size_t draws) {
  Sample sample;
  const auto bound = EIGENVEIL_TRY(RowBound::of(model.row_bound));
  BoundingOptions options{.bound = bound};
  options.threads = threads;
  const std::size_t d = model.spectrum.size();
  const std::size_t m = sample_rows(model.rows, d);
  const auto bounded = [&](const Eigenbasis& basis, std::size_t rows, std::uint64_t draw_seed) {
    MemorySource source(draw_rows(model, basis, rows, draw_seed));
    return BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
  };
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Eigenbasis basis(model, seed + i);
    auto rows = EIGENVEIL_TRY(bounded(basis, m, seed + i));
    const auto truth = [basis, spectrum = model.spectrum](const std::string& array) -> Matrix {
      if (array == "components") return basis.top().transpose();
      return array == "covariance" ? basis.covariance(spectrum) : Matrix();
    };
    const auto lost = [basis, spectrum = model.spectrum](const Matrix& V) { return lost_variance(spectrum, basis, V); };
    sample.draws.push_back({std::move(rows), truth, lost, {}});
    if (m == model.rows || m / 2 < d + d / 4) continue;
    auto half = EIGENVEIL_TRY(bounded(basis, m / 2, seed + i + 1000));
    sample.draws.back().half = std::move(half);
  }
  return sample;
}

class SpectrumRows final : public PublicModel {
 public:
  explicit SpectrumRows(SpectrumModel model) : model_(std::move(model)) {}
  std::size_t rows() const override { return model_.rows; }
  std::size_t columns() const override { return model_.spectrum.size(); }
  bool one_sample() const override { return false; }
  Result<Sample> draw(std::size_t rows, int threads) const override {
    SpectrumModel model = model_;
    model.rows = rows;
    return draw_sample(model, threads, 1, rows == model_.rows ? 3 : 1);
  }
  // Loadings on few columns, and rows of two kinds, are not told by second moments alone; of very many columns their
  // square is too large.
  std::unique_ptr<RowLaw> law() const override {
    constexpr std::size_t kMostColumns = 4096;
    if (model_.sparsity || model_.signal_share < 1 || columns() > kMostColumns) return nullptr;
    return std::make_unique<SpectrumLaw>(model_);
  }
  // One draw as doubles, twice, and four as integers of 4 bytes: three for its own number of rows, one for another.
  std::size_t bytes() const override { return sample_rows(SIZE_MAX, columns()) * columns() * 32; }
  std::vector<std::string> notes(const Sample& sample) const override {
    if (sample.rows() >= model_.rows || sample.rows() >= columns()) return {};
    return {fmt::format(
        "The forecast simulates {} of the {} rows, fewer than there are columns: the true error will be lower.",
        sample.rows(), model_.rows)};
  }

 private:
  SpectrumModel model_;
};

}  // namespace

Result<Sample> draw_sample(const SpectrumModel& model, int threads, std::uint64_t seed, std::size_t draws) {
  return on_one_thread([&] { return draw_spectrum(model, threads, seed, draws); });
}

std::unique_ptr<PublicModel> public_model(SpectrumModel model) {
  return std::make_unique<SpectrumRows>(std::move(model));
}

}  // namespace eigenveil
