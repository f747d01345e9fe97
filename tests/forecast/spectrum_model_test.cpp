// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/spectrum_model.hpp"

#include <gtest/gtest.h>

#include "eigenveil/linalg/decompositions.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

TEST(SpectrumModel, DrawsRowsWithItsSpectrumAndComponents) {
  Vector spectrum(6);
  spectrum << 5, 3, 1, 1, 0.5, 0.5;
  const SpectrumModel model{20000, spectrum, 100, 2};
  const Eigenbasis basis(model, 3);
  const RowMajorMatrix rows = draw_rows(model, basis, 20000, 3);
  const Matrix S = rows.transpose() * rows / 20000.0;
  EXPECT_LT((S - basis.covariance(spectrum)).norm(), 0.3);
  EXPECT_LT((basis.top().transpose() * basis.covariance(spectrum) * basis.top() - Matrix(spectrum.head(2).asDiagonal()))
                .norm(),
            1e-12);
  const SymmetricEigen dense = symmetric_eigen(basis.covariance(spectrum));
  EXPECT_LT((dense.values.reverse() - spectrum).norm(), 1e-12);
}

// A sample of m rows is to err as n rows do: its second moment has the spread of a Wishart matrix with n degrees.
TEST(SpectrumModel, ASmallSampleErrsNoMoreThanTheLargeOne) {
  const SpectrumModel model{100000, Vector::Ones(10), 100, 1};
  double square = 0;
  constexpr int kTrials = 40;
  for (int seed = 0; seed < kTrials; ++seed) {
    const auto s = static_cast<std::uint64_t>(seed);
    const RowMajorMatrix rows = draw_rows(model, Eigenbasis(model, s), 300, s);
    square += (rows.transpose() * rows / 300.0 - Matrix::Identity(10, 10)).squaredNorm() / kTrials;
  }
  // E ||W / n - I||_F^2 = d (d + 1) / n = 0.0011; 300 plain rows would have 0.37
  EXPECT_NEAR(square, 0.0011, 0.0003);
}

TEST(SpectrumModel, SparseComponentsLiveOnFewColumns) {
  const SpectrumModel model{1000, gap_spectrum(50, 2, 9), 2, 2, 1, 5};
  EXPECT_EQ((Eigenbasis(model, 1).top().rowwise().norm().array() > 0).count(), 5);
}

TEST(Spectrum, IsReadSortedAndContinued) {
  const test::TempDir folder;
  const auto read = [&](const std::string& text) { return read_spectrum(folder.write_file("s.txt", text), 5); };
  EXPECT_EQ(*read("1, 4\n2"), (Vector(5) << 4, 2, 1, 1, 1).finished());
  for (const char* bad : {"", "1 2 x", "3 -1", "nan", "0 0", "1 1 1 1 1 1"}) {
    const auto refused = read(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage) << bad;
  }
  EXPECT_FALSE(read_spectrum(folder.file("missing"), 5).ok());
}

// Its own sample is the best one; those of other sizes are made to be looked at once.
TEST(SpectrumModel, IsDrawnAnewForEveryNumberOfRows) {
  const auto model = public_model(SpectrumModel{4000, gap_spectrum(8, 1, 5), 2, 1});
  Samples samples(*model, 1);
  EXPECT_EQ((*samples.at(4000))->draws.size(), 3U);
  EXPECT_EQ((*samples.at(500))->draws.size(), 1U);
  EXPECT_EQ((*samples.at(500))->rows(), 500U);
  const Sample& own = **samples.at(4000);
  EXPECT_EQ(own.draws.front().truth("components").rows(), 1);
  EXPECT_EQ(own.draws.front().truth("covariance").rows(), 8);
  EXPECT_EQ(own.draws.front().truth("mean").size(), 0) << "what it does not know, it does not say";
}

}  // namespace
}  // namespace eigenveil
