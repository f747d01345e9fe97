// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zip.h>
#include <zlib.h>

#include <optional>
#include <sstream>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::bench {

/// Rows of a public data set with two classes, in the units of its columns.
struct LabelledRows {
  std::string name;
  RowMajorMatrix rows;
  std::vector<int> classes;  ///< 0 or 1
  /// Public ranges of the first columns; the others lie in [lowest, 1].
  std::vector<std::pair<double, double>> ranges = {};
  double lowest = 0;
};

inline LabelledRows parse(const std::string& name, const std::string& text, std::size_t skip, bool label_first) {
  std::vector<double> numbers;
  std::size_t width = 0;
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    if (i < skip || line.empty()) continue;
    std::size_t count = 0;
    const char* at = line.c_str();
    for (char* end = nullptr;; at = end + 1) {
      numbers.push_back(std::strtod(at, &end));
      ++count;
      if (*end != ',') break;
    }
    width = count;
  }
  const auto columns = static_cast<Eigen::Index>(width);
  const auto all =
      Eigen::Map<RowMajorMatrix>(numbers.data(), static_cast<Eigen::Index>(numbers.size()) / columns, columns);
  LabelledRows table{name, label_first ? all.rightCols(columns - 1) : all.leftCols(columns - 1), {}};
  for (Eigen::Index i = 0; i < all.rows(); ++i) {
    const double label = label_first ? all(i, 0) : all(i, columns - 1);
    table.classes.push_back(label_first ? (label > 0 ? 1 : 0) : (label == 2 ? 1 : 0));
  }
  return table;
}

/// label in {-1, 1}; cluster id, mode and type of the game; heroes in {-1, 0, 1}
inline std::optional<LabelledRows> dota2() {
  const std::string path = test::shared_data("dota2Dataset.zip");
  if (path.empty()) return std::nullopt;
  int failure = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY, &failure);
  if (archive == nullptr) return std::nullopt;
  zip_stat_t facts;
  zip_stat(archive, "dota2Train.csv", 0, &facts);
  std::string text(facts.size, '\0');
  zip_file_t* member = zip_fopen(archive, "dota2Train.csv", 0);
  zip_fread(member, text.data(), text.size());
  zip_fclose(member);
  zip_close(archive);
  LabelledRows table = parse("Dota2", text, 0, true);
  table.ranges = {{0, 300}, {0, 10}, {0, 4}};
  table.lowest = -1;
  return table;
}

/// The file has columns in [0, 1]: the ranges of its first ten, as published with the data set, give metres and degrees
/// back (all 92,962 rows come out whole). Class 2 against the others, so that there are two.
inline std::optional<LabelledRows> covertype() {
  const std::string path = test::shared_data("covertype-93k.csv.gz");
  if (path.empty()) return std::nullopt;
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::vector<char> block(1 << 20);
  for (int got = 0; (got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0;)
    text.append(block.data(), static_cast<std::size_t>(got));
  gzclose(file);
  LabelledRows table = parse("Covertype", text, 1, false);
  table.ranges = {{1859, 3858}, {0, 360}, {0, 66},  {0, 1397}, {-173, 601},
                  {0, 7117},    {0, 254}, {0, 254}, {0, 254},  {0, 7173}};
  for (std::size_t j = 0; j < table.ranges.size(); ++j) {
    const auto [low, high] = table.ranges[j];
    auto column = table.rows.col(static_cast<Eigen::Index>(j)).array();
    column = (low + column * (high - low)).round();
  }
  return table;
}

/// Columns mapped onto [-1, 1] by their public ranges.
inline LabelledRows ranged(LabelledRows table) {
  for (Eigen::Index j = 0; j < table.rows.cols(); ++j) {
    const auto i = static_cast<std::size_t>(j);
    const auto [low, high] = i < table.ranges.size() ? table.ranges[i] : std::pair(table.lowest, 1.0);
    table.rows.col(j) = (table.rows.col(j).array() - low) * (2 / (high - low)) - 1;
  }
  return table;
}

}  // namespace eigenveil::bench
