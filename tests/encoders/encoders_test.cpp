// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <complex>
#include <numbers>
#include <random>

#include "eigenveil/encoders/images.hpp"
#include "eigenveil/encoders/public_images.hpp"
#include "eigenveil/encoders/text.hpp"
#include "src/encoders/fourier.hpp"
#include "tests/data/reading.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

RowMajorMatrix noise_images(Eigen::Index count, Eigen::Index pixels) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  return RowMajorMatrix::NullaryExpr(count, pixels, [&] { return uniform(random); });
}

// The definition, by sums over all pixels: no Fourier transform anywhere.
using Grid = std::vector<std::vector<double>>;

Grid convolve_modulus(const Grid& x, const Scatter::Filter& psi, std::size_t step) {
  const std::size_t rows = x.size(), columns = x[0].size();
  Grid out(rows / step, std::vector<double>(columns / step));
  for (std::size_t i = 0; i < rows; i += step)
    for (std::size_t j = 0; j < columns; j += step) {
      std::complex<double> sum = 0;
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < columns; ++b) {
          const auto r = static_cast<Eigen::Index>((i + rows - a) % rows);
          const auto c = static_cast<Eigen::Index>((j + columns - b) % columns);
          sum += x[a][b] * std::complex<double>(psi.real(r, c), psi.imaginary(r, c));
        }
      out[i / step][j / step] = std::abs(sum);
    }
  return out;
}

// phi of 1.6 pixels of the padded image, at its pixels 2, 6, 10, ...; `scale` of them are one pixel of x.
void low_pass(const Grid& x, std::size_t scale, std::vector<double>& out) {
  const std::size_t rows = x.size(), columns = x[0].size(), step = 4 / scale;
  const double sigma = 1.6 / static_cast<double>(scale);
  for (std::size_t i = step / 2; i < rows; i += step)
    for (std::size_t j = step / 2; j < columns; j += step) {
      double sum = 0;
      for (int py = -2; py <= 2; ++py)
        for (int px = -2; px <= 2; ++px)
          for (std::size_t a = 0; a < rows; ++a)
            for (std::size_t b = 0; b < columns; ++b) {
              const double y = static_cast<double>(i) - static_cast<double>(a) + py * static_cast<double>(rows);
              const double z = static_cast<double>(j) - static_cast<double>(b) + px * static_cast<double>(columns);
              sum += x[a][b] * std::exp(-(y * y + z * z) / (2 * sigma * sigma));
            }
      out.push_back(sum / (2 * std::numbers::pi * sigma * sigma));
    }
}

std::vector<double> slow_scatter(const double* image, int height, int width) {
  const int rows = (height + 7) / 4 * 4, columns = (width + 7) / 4 * 4;
  const auto mirror = [](int at, int side) { return at < 0 ? -at : at >= side ? 2 * side - 2 - at : at; };
  Grid x(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      x[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
          image[mirror(i - (rows - height) / 2, height) * width + mirror(j - (columns - width) / 2, width)];
  const auto psi = [&](std::size_t scale, std::size_t angle) {
    return Scatter::morlet(x.size(), x[0].size(), scale, angle);
  };
  std::vector<double> order0, order1, order2;
  low_pass(x, 1, order0);
  for (std::size_t l = 0; l < 8; ++l) {
    const Grid u = convolve_modulus(x, psi(0, l), 1);
    low_pass(u, 1, order1);
    for (std::size_t m = 0; m < 8; ++m) low_pass(convolve_modulus(u, psi(1, m), 2), 2, order2);
  }
  for (std::size_t l = 0; l < 8; ++l) low_pass(convolve_modulus(x, psi(1, l), 2), 2, order1);
  order0.insert(order0.end(), order1.begin(), order1.end());
  order0.insert(order0.end(), order2.begin(), order2.end());
  return order0;
}

TEST(Scatter, AgreesWithDirectConvolution) {
  for (const auto& [height, width] : {std::pair{28, 28}, {9, 14}, {17, 40}}) {
    const RowMajorMatrix images = noise_images(1, height * width);
    const auto scatter = Scatter::make(static_cast<std::size_t>(height), static_cast<std::size_t>(width));
    ASSERT_TRUE(scatter.ok());
    std::vector<double> fast(scatter->features());
    scatter->transform(images.data(), 1, fast.data(), 1);
    const std::vector<double> slow = slow_scatter(images.data(), height, width);
    ASSERT_EQ(fast.size(), slow.size());
    double largest = 0;
    for (std::size_t i = 0; i < slow.size(); ++i) largest = std::max(largest, std::abs(fast[i] / slow[i] - 1));
    EXPECT_LT(largest, 1e-9) << height << "x" << width;
  }
}

// Lengths of one stage and of many, with primes large and small; every second wave is left alone.
TEST(Fourier, IsTheSumOverAllElementsOfEveryLane) {
  using lanes::Wave;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 6U, 8U, 12U, 16U, 30U, 32U, 49U, 100U, 228U, 257U, 514U, 1028U}) {
    const lanes::Fourier fourier(n);
    std::vector<Wave> values(2 * n), work(fourier.room(1));
    for (Wave& wave : values)
      for (std::size_t lane = 0; lane < lanes::kLanes; ++lane) {
        wave.re[lane] = uniform(random);
        wave.im[lane] = uniform(random);
      }
    const std::vector<Wave> before = values;
    fourier(values.data(), 1, 0, 2, 1, work.data());
    double largest = 0;
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t lane = 0; lane < lanes::kLanes; ++lane) {
        std::complex<double> sum = 0;
        for (std::size_t i = 0; i < n; ++i)
          sum += std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n)) *
                 std::complex<double>(before[2 * i].re[lane], before[2 * i].im[lane]);
        const Wave& z = values[2 * k];
        largest = std::max(largest, std::abs(sum - std::complex<double>(z.re[lane], z.im[lane])));
        EXPECT_EQ(values[2 * k + 1].re[lane], before[2 * k + 1].re[lane]);
      }
    EXPECT_LT(largest, 1e-12 * static_cast<double>(n)) << n;
  }
}

TEST(Scatter, Has81ChannelsOf8x8ForSmallImages) {
  EXPECT_EQ(Scatter::make(28, 28)->features(), 81U * 64);
  EXPECT_FALSE(Scatter::make(3, 28).ok());
  EXPECT_FALSE(Scatter::make(28, 5000).ok());
}

TEST(Scatter, IsTheSameWhateverTheThreadsAndNeighbours) {
  const RowMajorMatrix images = noise_images(40, 784);
  const auto scatter = Scatter::make(28, 28);
  RowMajorMatrix one(40, 5184), many(40, 5184), alone(1, 5184);
  scatter->transform(images.data(), 40, one.data(), 1);
  Scatter::make(28, 28)->transform(images.data(), 40, many.data(), 7);
  EXPECT_TRUE(one == many);
  scatter->transform(images.row(17).data(), 1, alone.data(), 1);
  EXPECT_TRUE(alone.row(0) == one.row(17));
}

// Sums that begin at the first aligned address would differ in the last bits.
TEST(ImageEncoder, IsAFunctionOfTheImageAloneWhateverItsPlaceInMemory) {
  for (const char* kind : {"pixels", "scatter"})
    for (const std::size_t side : {5U, 8U, 9U, 28U}) {
      const auto encoder = ImageEncoder::make({.kind = kind, .height = side, .width = side});
      ASSERT_TRUE(encoder.ok());
      const std::size_t pixels = side * side;
      const RowMajorMatrix image = 255 * noise_images(1, static_cast<Eigen::Index>(pixels));
      const RowMajorMatrix alone = *encoder->encode(image.data(), 1, 1);
      for (const std::size_t offset : {0U, 1U, 2U, 3U})
        for (const std::size_t row : {0U, 1U, 2U, 7U}) {
          std::vector<double> memory(offset + 8 * pixels, 17.0);
          std::copy_n(image.data(), pixels, memory.begin() + static_cast<std::ptrdiff_t>(offset + row * pixels));
          const RowMajorMatrix among = *encoder->encode(memory.data() + offset, 8, 2);
          EXPECT_TRUE(among.row(static_cast<Eigen::Index>(row)) == alone.row(0)) << kind << " " << side << " " << row;
        }
    }
}

TEST(TextEncoder, IsAFunctionOfTheTextAlone) {
  const TextEncoder encoder = TextEncoder::hash(33);
  const std::vector<std::string> texts = {"cat", "a small dog", "cat", "ship", "cat"};
  const auto rows = encoder.encode(texts, [](std::size_t) { return std::string(); });
  ASSERT_TRUE(rows.ok());
  for (const Eigen::Index row : {2, 4}) EXPECT_TRUE(rows->row(row) == rows->row(0));
  EXPECT_TRUE(rows->row(0).transpose() == *encoder.encode("cat"));
}

// Its wavelets have mean zero: a flat image has nothing beyond order zero.
TEST(Scatter, HearsNothingInAFlatImage) {
  const RowMajorMatrix flat = RowMajorMatrix::Constant(1, 784, 0.7);
  RowMajorMatrix features(1, 5184);
  Scatter::make(28, 28)->transform(flat.data(), 1, features.data(), 1);
  EXPECT_NEAR(features.leftCols(64).minCoeff(), 0.7, 1e-3);
  EXPECT_NEAR(features.rightCols(5120).cwiseAbs().maxCoeff(), 0, 1e-6);
}

TEST(ImageEncoder, GivesRowsOfLengthOneAtMost) {
  const RowMajorMatrix images = 255 * public_images(20, 28, 28);
  for (const std::string kind : {"scatter", "pixels"}) {
    const auto encoder = ImageEncoder::make({.kind = kind});
    const RowMajorMatrix features = *encoder->encode(images.data(), 20, 2);
    EXPECT_EQ(static_cast<std::size_t>(features.cols()), encoder->features());
    EXPECT_LE(features.rowwise().norm().maxCoeff(), 1.0);
    EXPECT_GT(features.rowwise().norm().minCoeff(), 0.3);
  }
  EXPECT_FALSE(ImageEncoder::make({.kind = "resnet"}).ok());
  EXPECT_FALSE(ImageEncoder::make({.lower = 1, .upper = 1}).ok());
}

TEST(PublicBasis, IsOrthonormalAndHoldsWhatPublicImagesHave) {
  const auto encoder = ImageEncoder::make({.kind = "pixels", .height = 12, .width = 12});
  const auto basis = public_basis(*encoder, 30, 300, 2);
  ASSERT_TRUE(basis.ok());
  EXPECT_LT((basis->basis.transpose() * basis->basis - Matrix::Identity(30, 30)).norm(), 1e-9);
  RowMajorMatrix images = 255 * public_images(300, 12, 12);
  Matrix X = *encoder->encode(images.data(), 300, 1);
  X.rowwise() -= basis->mean.transpose();
  EXPECT_GT((X * basis->basis).squaredNorm(), 0.8 * X.squaredNorm());
  EXPECT_TRUE(public_basis(*encoder, 30, 300, 1)->basis.isApprox(basis->basis, 1e-9));
}

TEST(PublicImages, AreTheSameForEverEveryPixelInRange) {
  const RowMajorMatrix images = public_images(50, 28, 28);
  EXPECT_TRUE(images == public_images(60, 28, 28).topRows(50));
  EXPECT_GE(images.minCoeff(), 0);
  EXPECT_LE(images.maxCoeff(), 1);
  EXPECT_GT(images.rowwise().maxCoeff().minCoeff(), 0.01) << "an empty picture";
}

TEST(TextEncoder, TellsWordsApartAndIgnoresCase) {
  const TextEncoder encoder = TextEncoder::hash();
  const Vector shirt = *encoder.encode("a photo of a Shirt");
  EXPECT_NEAR(shirt.norm(), 1, 1e-12);
  EXPECT_TRUE(shirt == *encoder.encode("A photo of a shirt!"));
  EXPECT_GT(shirt.dot(*encoder.encode("a photo of a t-shirt")), shirt.dot(*encoder.encode("a photo of a boot")));
  EXPECT_THAT(encoder.encode(" ?! ").error().message, HasSubstr("no text"));
}

TEST(TextEncoder, WordVectorsAreTheSameFromTextAndFromAnArray) {
  const test::TempDir dir;
  const auto text = TextEncoder::vectors(dir.write_file("t.vec", "cat 1 2.5\nna\xc3\xafve -1 0.5\ndog 0 -3\n"));
  const std::string path =
      dir.write_file("w.npy", test::npy("<f4", "(3, 2)", test::bytes_of(std::vector<float>{1, 2.5, -1, 0.5, 0, -3})));
  dir.write_file("w.txt", "cat\r\nna\xc3\xafve\ndog\n");
  const auto array = TextEncoder::from_text("vectors:" + path);
  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(array->identity().file, "w.npy") << "a name, not a path";
  for (const char* words : {"a Cat", "the na\xc3\xafve dog"})
    EXPECT_TRUE(*array->encode(words) == *text->encode(words));
  EXPECT_TRUE(text->encode("cat")->isApprox(Vector{{1, 2.5}}.normalized()));
  EXPECT_THAT(array->encode("a fish").error().message, HasSubstr("knows none"));

  const auto refusal = [&] { return TextEncoder::vectors(path).error().message; };
  dir.write_file("w.txt", "cat\ndog\n");
  EXPECT_THAT(refusal(), HasSubstr("w.npy has 3 rows, but " + dir.file("w.txt") + " has 2 words"));
  dir.write_file("w.txt", "cat\n\ndog\n");
  EXPECT_THAT(refusal(), HasSubstr("w.txt, line 2: the word is empty"));
  std::filesystem::remove(dir.file("w.txt"));
  EXPECT_THAT(refusal(), HasSubstr("w.txt: cannot be read"));
  dir.write_file("w.txt", "cat\ndog\n");
  dir.write_file("w.npy", test::npy("<f8", "(2, 1)", test::bytes_of(std::vector<double>{1, test::kNaN})));
  EXPECT_THAT(refusal(), HasSubstr("w.npy, row 2: has a value that is missing"));
  EXPECT_THAT(TextEncoder::vectors(dir.file("w.npz")).error().message,
              HasSubstr("FILE.npy with the words in FILE.txt"));
}

TEST(EncodePrompts, AveragesThePromptsOfAClass) {
  const TextEncoder encoder = TextEncoder::hash();
  const auto rows = encode_prompts(encoder, {"cat", "dog"}, {"a {}", "the {}"});
  ASSERT_TRUE(rows.ok());
  const Vector cat = (*encoder.encode("a cat") + *encoder.encode("the cat")).normalized();
  EXPECT_NEAR((rows->row(0).transpose() - cat).norm(), 0, 1e-12);
  EXPECT_THAT(encode_prompts(encoder, {"cat"}, {"a photo"}).error().message, HasSubstr("{}"));
}

}  // namespace
}  // namespace eigenveil
