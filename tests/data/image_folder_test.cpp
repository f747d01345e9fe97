// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/image_folder.hpp"

#include "tests/data/image_file.hpp"
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr unsigned kHeight = 5, kWidth = 7, kPixels = kHeight * kWidth;

Bytes noise(std::size_t count, unsigned seed = 1) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<unsigned char>((seed = seed * 1103515245U + 12345U) >> 16);
  return bytes;
}

double luma(double r, double g, double b) { return std::floor((19595 * r + 38470 * g + 7471 * b + 32768) / 65536); }

class ImageFolderTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(dir_.file("images")); }
  std::string folder() const { return dir_.file("images"); }
  std::string write(const std::string& name, const std::string& bytes) const {
    return dir_.write_file("images/" + name, bytes);
  }
  // One file, as grey or colours.
  std::vector<double> read_one(const std::string& bytes, bool colour = false) const {
    write("a.png", bytes);
    return must_read(folder(), {.colour = colour}).values;
  }
  TempDir dir_;
};

TEST_F(ImageFolderTest, EveryKindOfPngIsRead) {
  for (const bool interlaced : {false, true}) {
    const Bytes grey = noise(kPixels);
    EXPECT_THAT(read_one(png_of(kHeight, kWidth, grey, {.interlaced = interlaced})),
                SameValues(std::vector<double>(grey.begin(), grey.end())));
    // 16 bits: v / 257
    const Bytes wide = noise(kPixels * 2);
    std::vector<double> expected;
    for (std::size_t i = 0; i < kPixels; ++i) expected.push_back((wide[2 * i] * 256 + wide[2 * i + 1]) / 257.0);
    EXPECT_THAT(read_one(png_of(kHeight, kWidth, wide, {.depth = 16, .interlaced = interlaced})), SameValues(expected));
    // Colours, to grey and as they are
    const Bytes rgb = noise(kPixels * 3);
    expected.clear();
    std::vector<double> planes(kPixels * 3);
    for (std::size_t i = 0; i < kPixels; ++i) {
      expected.push_back(luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
      for (std::size_t c = 0; c < 3; ++c) planes[c * kPixels + i] = rgb[3 * i + c];
    }
    const std::string file = png_of(kHeight, kWidth, rgb, {.type = PNG_COLOR_TYPE_RGB, .interlaced = interlaced});
    EXPECT_THAT(read_one(file), SameValues(expected));
    EXPECT_THAT(read_one(file, true), SameValues(planes));
    // The same pixels in 16 bits per value, which then are v * 257
    Bytes doubled;
    for (const auto v : rgb) doubled.insert(doubled.end(), {v, v});
    EXPECT_THAT(read_one(png_of(kHeight, kWidth, doubled, {PNG_COLOR_TYPE_RGB, 16, interlaced}), true),
                SameValues(planes));
  }
}

TEST_F(ImageFolderTest, FewBitsAndPalettesAreExpanded) {
  // 1 bit: 10100000, 01000000; 2 bits: 0 1 2 3 is 0 85 170 255
  EXPECT_THAT(read_one(png_of(2, 3, {0xa0, 0x40}, {.depth = 1})), ElementsAre(255, 0, 255, 0, 255, 0));
  EXPECT_THAT(read_one(png_of(1, 4, {0x1b}, {.depth = 2})), ElementsAre(0, 85, 170, 255));
  const std::vector<png_color> palette = {{10, 20, 30}, {200, 100, 50}};
  PngKind kind{.type = PNG_COLOR_TYPE_PALETTE, .palette = palette};
  EXPECT_THAT(read_one(png_of(1, 2, {1, 0}, kind), true), ElementsAre(200, 10, 100, 20, 50, 30));
  EXPECT_THAT(read_one(png_of(1, 2, {1, 0}, kind)), ElementsAre(luma(200, 100, 50), luma(10, 20, 30)));
  kind.palette_alpha = {255, 0};
  EXPECT_THAT(read_one(png_of(1, 2, {1, 0}, kind), true), ElementsAre(0, 10, 0, 20, 0, 30));
}

TEST_F(ImageFolderTest, WhatIsTransparentLiesOverBlack) {
  EXPECT_THAT(read_one(png_of(1, 3, {200, 255, 200, 128, 200, 0}, {.type = PNG_COLOR_TYPE_GRAY_ALPHA})),
              ElementsAre(200, 100, 0));  // 200 * 128 / 255 = 100.39
  EXPECT_THAT(read_one(png_of(1, 1, {200, 100, 51, 127}, {.type = PNG_COLOR_TYPE_RGB_ALPHA}), true),
              ElementsAre(100, 50, 25));  // 99.6, 49.8, 25.4
  EXPECT_THAT(read_one(png_of(1, 1, {0x80, 0, 0x80, 0}, {.type = PNG_COLOR_TYPE_GRAY_ALPHA, .depth = 16})),
              ElementsAre(16384 / 257.0));  // 32768 * 32768 / 65535 = 16384.25
}

TEST_F(ImageFolderTest, JpegIsNearWhatWasWrittenAndProgressiveTheSame) {
  Bytes rgb;
  for (unsigned i = 0; i < kPixels; ++i)
    for (const unsigned c : {i * 7, 255 - i * 5, 40 + i * 2}) rgb.push_back(static_cast<unsigned char>(c));
  write("a.JPG", jpeg_of(kHeight, kWidth, rgb, JCS_RGB));
  write("b.jpeg", jpeg_of(kHeight, kWidth, rgb, JCS_RGB, true));
  write("c.PNG", png_of(kHeight, kWidth, rgb, {.type = PNG_COLOR_TYPE_RGB}));
  write(".hidden", "x");
  for (const bool colour : {false, true}) {
    const Table table = must_read(folder(), {.colour = colour});
    ASSERT_EQ(table.rows, 3U);
    for (std::size_t j = 0; j < table.columns.size(); ++j) {
      EXPECT_EQ(table.at(0, j), table.at(1, j));
      EXPECT_NEAR(table.at(0, j), table.at(2, j), 3);
    }
  }
  Bytes grey = noise(kPixels);
  std::filesystem::remove(dir_.file("images/b.jpeg"));
  write("a.JPG", jpeg_of(kHeight, kWidth, grey, JCS_GRAYSCALE));
  write("c.PNG", png_of(kHeight, kWidth, grey));
  const Table table = must_read(folder());
  for (std::size_t j = 0; j < kPixels; ++j) EXPECT_NEAR(table.at(0, j), table.at(1, j), 3);
}

TEST_F(ImageFolderTest, OrderIsThatOfTheNamesWhateverThreadsBatchesAndShares) {
  std::vector<double> expected;
  for (const char* name : {"10.png", "9.png", "B.png", "_.png", "a.png", "\xc3\xa9.png"}) {
    const Bytes pixels = noise(kPixels, static_cast<unsigned char>(name[0]));
    write(name, png_of(kHeight, kWidth, pixels));
    expected.insert(expected.end(), pixels.begin(), pixels.end());
  }
  for (const int threads : {1, 3})
    for (const std::size_t most : {1U, 4U, 100U})
      EXPECT_THAT(must_read(folder(), {.threads = threads}, most).values, SameValues(expected));
  std::vector<double> shared;
  for (const std::size_t index : {0U, 1U, 2U, 3U}) {
    const auto source = open_source(folder(), {.share = {index, 4}});
    RawBatch batch;
    while ((*source)->next(batch, 2).ok() && batch.rows > 0)
      shared.insert(shared.end(), batch.values.begin(), batch.values.end());
  }
  EXPECT_THAT(shared, SameValues(expected));
  EXPECT_THAT(must_read(folder(), {.columns = {"3", "1"}}).at(0, 1), expected[0]);
}

TEST_F(ImageFolderTest, TheFolderSaysItsShape) {
  EXPECT_FALSE(image_folder(folder())->has_value());
  EXPECT_FALSE(image_folder(dir_.file("nothing"))->has_value());
  write("a.png", png_of(kHeight, kWidth, noise(kPixels)));
  write("b.jpg", jpeg_of(kHeight, kWidth, noise(kPixels * 3), JCS_RGB));
  const auto found = *image_folder(folder());
  EXPECT_EQ(std::pair(found->height, found->width), std::pair(std::size_t{kHeight}, std::size_t{kWidth}));
  const std::string other = write("c.png", png_of(2, 3, noise(6)));
  EXPECT_THAT(image_folder(folder()).error().message, AllOf(HasSubstr(other + ": is 2x3"), HasSubstr("a.png is 5x7")));
  const auto table = read_table(folder());
  EXPECT_THAT(table.error().message, AllOf(HasSubstr(other + ": is 2x3"), HasSubstr("5x7 is expected")));
}

// Where what cannot be read is a row like any other, the first image is one too.
TEST_F(ImageFolderTest, NoImageDecidesHowAllOthersAreRead) {
  SourceOptions options{.bad_rows = BadRows::kMissing};
  const Bytes pixels = noise(kPixels, 2);
  const std::vector<double> second(pixels.begin(), pixels.end());
  write("b.png", png_of(kHeight, kWidth, pixels));
  const std::string sane = png_of(kHeight, kWidth, noise(kPixels));
  for (const std::string& first : {sane, png_of(kWidth, kHeight, noise(kPixels)), png_of(2, 3, noise(6)),
                                   sane.substr(0, 60), std::string(), std::string("no image")}) {
    write("a.png", first);
    options.fields = 0;
    const auto unstated = read_table(folder(), options);
    ASSERT_FALSE(unstated.ok());
    EXPECT_EQ(unstated.error().code, ErrorCode::kUsage);
    EXPECT_THAT(unstated.error().message, HasSubstr("`fields` N"));
    options.fields = kPixels;
    const auto table = must_read(folder(), options);
    ASSERT_EQ(table.values.size(), 2 * kPixels);
    EXPECT_THAT(std::vector<double>(table.values.begin() + kPixels, table.values.end()), SameValues(second));
  }
}

class BadImageTest : public ImageFolderTest {
 protected:
  // Both of what is seen first, and of what is seen when pixels are read.
  void expect_bad(const std::string& name, const std::string& bytes, const std::string& words) {
    const std::string path = write(name, bytes);
    const auto table = read_table(folder());
    ASSERT_FALSE(table.ok()) << name << ", " << words;
    EXPECT_EQ(table.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(table.error().message, AllOf(HasSubstr(path), HasSubstr(words)));
    std::filesystem::remove(path);
  }
};

TEST_F(BadImageTest, TruncatedFilesAreRefusedWhereverTheyEnd) {
  const std::string png = png_of(kHeight, kWidth, noise(kPixels));
  const std::string jpeg = jpeg_of(16, 16, noise(256), JCS_GRAYSCALE);
  for (std::size_t size = 0; size < png.size(); ++size) expect_bad("a.png", png.substr(0, size), "");
  for (std::size_t size = 0; size < jpeg.size(); ++size) expect_bad("a.jpg", jpeg.substr(0, size), "");
}

TEST_F(BadImageTest, EveryDamagedByteOfAPngIsFound) {
  const std::string png = png_of(kHeight, kWidth, noise(kPixels));
  for (std::size_t i = 0; i < png.size(); ++i) {
    std::string bytes = png;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    expect_bad("a.png", bytes, "");
  }
}

TEST_F(BadImageTest, WhatIsNoImageIsNamed) {
  const std::string png = png_of(kHeight, kWidth, noise(kPixels));
  const std::string jpeg = jpeg_of(kHeight, kWidth, noise(kPixels), JCS_GRAYSCALE);
  expect_bad("a.png", "", "is empty");
  expect_bad("a.png", jpeg, "named like PNG but is a JPEG file");
  expect_bad("a.jpg", png, "named like JPEG but is a PNG file");
  expect_bad("a.jpeg", "GIF89a", "does not begin like it");
  expect_bad("a.jpg", jpeg_of(kHeight, kWidth, noise(kPixels * 4), JCS_CMYK), "CMYK");
  write("a.png", png);
  expect_bad("notes.txt", "x", "take it away");
  std::filesystem::create_directory(dir_.file("images/more"));
  EXPECT_THAT(read_table(folder()).error().message, HasSubstr("images/more"));
  expect_refusal(dir_.file("images/a.png"), {"single image"});
}

TEST_F(BadImageTest, FalseSizesCostNothing) {
  // Width and height of a PNG are its bytes 16 to 24, their checksum 29 to 33.
  std::string png = png_of(kHeight, kWidth, noise(kPixels));
  const auto claim = [&](std::uint32_t side) {
    for (std::size_t i = 0; i < 8; ++i) png[16 + i] = static_cast<char>(side >> (24 - 8 * (i % 4)));
    const auto sum = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17));
    for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
    return png;
  };
  expect_bad("a.png", claim(30000), "is 30000x30000");
  expect_bad("a.png", claim(0x7fffffff), "2147483647");
  expect_bad("a.png", claim(100), "damaged or truncated");
  std::string jpeg = jpeg_of(kHeight, kWidth, noise(kPixels), JCS_GRAYSCALE);
  const std::size_t frame = jpeg.find("\xff\xc0");
  for (std::size_t i = 0; i < 4; ++i) jpeg[frame + 5 + i] = static_cast<char>(i % 2 == 0 ? 0x75 : 0x30);
  expect_bad("a.jpg", jpeg, "is 30000x30000");
}

}  // namespace
}  // namespace eigenveil::test
