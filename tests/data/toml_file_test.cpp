// SPDX-License-Identifier: Apache-2.0
#include "src/data/toml_file.hpp"

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/data/reading.hpp"

namespace eigenveil::data {
namespace {

using test::TempDir;
using testing::HasSubstr;

std::size_t levels(const toml::node& node) {
  std::size_t below = 0;
  if (const toml::table* table = node.as_table())
    for (const auto& [key, inner] : *table) below = std::max(below, levels(inner));
  if (const toml::array* array = node.as_array())
    for (const toml::node& inner : *array) below = std::max(below, levels(inner));
  return below + 1;
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(TomlDepth, CountsDotsOfOneKeyAndOpenBracketsOutsideOfStringsAndComments) {
  for (const auto& [text, depth] :
       std::vector<std::pair<std::string, std::size_t>>{{"", 0},
                                                        {"a.b.c = 1\nd.e = 1.5\n", 2},
                                                        {"a . b . c\t. d = 1", 3},
                                                        {"[a.b.c.d]\n", 3},
                                                        {"[[a]]\n", 2},
                                                        {"a = [[[1, 2], [3]], {x.y = 1}]\n", 3},
                                                        {"a = [1.0, 2.0, 3.0, 4.0]\n", 1},
                                                        {"a = 'x.y.z[[[' # ...[[[[\n", 0},
                                                        {R"(a = "\".\\.[[" # .)", 0},
                                                        {"a = \"\"\".\n.\"\"\\\"\"\".[[\"\"\"\"\"\nb.c = ''", 1},
                                                        {"a = '''.\\'''''\nb.c.d = ''''''\ne.f.g.h = 1", 3},
                                                        {"a = \"\"\nb.c.d = 1", 2},
                                                        {"a = {b = \"\"\" # \" \"\"\", c.d.e = 1}", 2},
                                                        {"a = [''' ' '''', {c.d.e = 1}]", 2},
                                                        {"a = 'never closed\nb.c.d = 1", 2},
                                                        {"]]]a.b = 1", 1}})
    EXPECT_EQ(toml_depth(text), depth) << text;
}

// Texts of what TOML's grammar turns on: whatever toml++ takes is no deeper than was counted.
TEST(TomlDepth, IsNeverLessThanWhatTomlMakesOfIt) {
  const std::vector<std::string> pieces = {"\nc.c.c.c.c.c = 1",
                                           "\na = ",
                                           "\n[d.d.d.d.d]\n",
                                           "\ne = {f = ",
                                           ", g.g.g.g.g.g = 1}\n",
                                           "1",
                                           "\n",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           ",",
                                           "\"",
                                           "'",
                                           "\"\"\"",
                                           "'''",
                                           "#",
                                           "\\",
                                           " ",
                                           "\r\n",
                                           "."};
  std::mt19937 random(45);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::uniform_int_distribution<std::size_t> piece(0, pieces.size() - 1);
  std::uniform_int_distribution<std::size_t> length(1, 8);
  int taken = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (std::size_t left = length(random); left > 0; --left) text += pieces[piece(random)];
    try {
      const toml::table tree = toml::parse(text);
      const std::size_t n = toml_depth(text);
      ASSERT_LE(levels(tree), (n + 1) * (n + 2)) << text;
      if (!tree.empty()) ++taken;
    } catch (const toml::parse_error&) {  // most are
    }
  }
  EXPECT_GT(taken, 1000);
}

class TomlFile : public testing::Test {
 protected:
  TempDir dir_;

  std::string refusal(std::string_view text) const {
    const auto root = read_toml(dir_.write_file("a.toml", text));
    if (root.ok()) return "taken";
    EXPECT_EQ(root.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(root.error().message, HasSubstr(dir_.file("a.toml")));
    return root.error().message;
  }
};

TEST_F(TomlFile, WhatIsDeepIsRefusedBeforeThereIsATree) {
  constexpr std::size_t kMany = 300'000;
  for (const std::string& text : {"x" + repeated(".x", kMany) + " = 1\n", "x" + repeated(" . x", kMany) + " = 1\n",
                                  "x" + repeated(".'x'", kMany) + " = 1\n", "[x" + repeated(".x", kMany) + "]\n",
                                  "[[x" + repeated(".x", kMany) + "]]\n", "a = {x" + repeated(".x", kMany) + " = 1}\n",
                                  "a = " + std::string(kMany, '[') + '\n', "a = " + repeated("{a=", kMany) + '\n',
                                  "a = \"\"\"\"\"\"\nx" + repeated(".x", kMany) + " = 1\n"})
    EXPECT_THAT(refusal(text), HasSubstr("more than 16 dots")) << text.substr(0, 20);
  EXPECT_EQ(refusal("x" + repeated(".x", kDeepestToml) + " = '" + std::string(kMany, '.') + "'\n"), "taken");
}

TEST_F(TomlFile, WhatIsLargeDamagedOrNoFileIsRefused) {
  EXPECT_THAT(refusal("a = 1\nb = \n"), HasSubstr("line 2: is not valid TOML"));
  EXPECT_THAT(read_toml(dir_.file("nothing")).error().message, HasSubstr("no such file"));
  EXPECT_THAT(read_toml(dir_.path().string()).error().message, HasSubstr("directory"));
  const std::string large = dir_.write_file("large.toml", "");
  std::filesystem::resize_file(large, kLargestToml + 1);
  EXPECT_THAT(read_toml(large).error().message, HasSubstr("is larger than 64 MiB"));
}

}  // namespace
}  // namespace eigenveil::data
