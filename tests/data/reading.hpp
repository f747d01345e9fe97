// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "eigenveil/data/source.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Table {
  std::vector<std::string> columns;
  std::size_t rows = 0;
  std::vector<double> values;

  double at(std::size_t row, std::size_t column) const { return values.at(row * columns.size() + column); }
};

/// A CSV file with a header, as most are.
inline SourceOptions named(SourceOptions options = {}) {
  options.header = HeaderRule::kYes;
  return options;
}

inline Result<Table> read_table(const std::string& path, const SourceOptions& options = named(),
                                std::size_t max_rows = 1000) {
  auto source = open_source(path, options);
  if (!source.ok()) return source.error();
  Table table;
  table.columns = (*source)->columns();
  RawBatch batch;
  while (true) {
    EIGENVEIL_TRY((*source)->next(batch, max_rows));
    if (batch.rows == 0) break;
    EXPECT_EQ(batch.first_row, table.rows);
    EXPECT_LE(batch.rows, max_rows);
    EXPECT_EQ(batch.values.size(), batch.rows * table.columns.size());
    table.rows += batch.rows;
    table.values.insert(table.values.end(), batch.values.begin(), batch.values.end());
  }
  EXPECT_EQ((*source)->progress(), 1.0) << path;
  EXPECT_EQ((*source)->rows_announced().value_or(table.rows), table.rows);
  return table;
}

/// The same value, NaN being the same as NaN.
MATCHER_P(SameValues, expected, "") {
  const std::vector<double> wanted = expected;
  if (arg.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!(arg[i] == wanted[i] || (std::isnan(arg[i]) && std::isnan(wanted[i])))) return false;
  return true;
}

inline Table must_read(const std::string& path, const SourceOptions& options = named(), std::size_t max_rows = 1000) {
  Result<Table> table = read_table(path, options, max_rows);
  if (table.ok()) return *table;
  ADD_FAILURE() << table.error().message;
  return {};
}

/// The refusal of a file that must not be readable; all that a message must say.
inline void expect_refusal(const std::string& path, const std::vector<std::string>& said,
                           const SourceOptions& options = named(), ErrorCode code = ErrorCode::kBadInput) {
  const Result<Table> table = read_table(path, options);
  ASSERT_FALSE(table.ok()) << path << " was read";
  EXPECT_EQ(table.error().code, code) << table.error().message;
  EXPECT_THAT(table.error().message, testing::HasSubstr(code == ErrorCode::kBadInput ? path : std::string()));
  for (const std::string& words : said) EXPECT_THAT(table.error().message, testing::HasSubstr(words));
}

inline std::string gzip(const std::string& bytes) {
  z_stream zlib{};
  deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib does not write there
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

/// The bytes of the values, as little or big endian.
template <class T>
std::string bytes_of(const std::vector<T>& values, bool big_endian = false) {
  std::string bytes;
  for (T value : values) {
    char one[sizeof(T)];
    std::memcpy(one, &value, sizeof(T));
    if (big_endian) std::reverse(one, one + sizeof(T));
    bytes.append(one, sizeof(T));
  }
  return bytes;
}

inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       bool fortran = false, int version = 1) {
  std::string dictionary =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  const std::size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (std::size_t i = 0; i < prefix - 8; ++i) out += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  return out + dictionary + data;
}

/// Runs a Python script with numpy; false if there is none.
inline bool run_python(const TempDir& dir, const std::string& script) {
  const std::string path = dir.write_file("script.py", script);
  return std::system(("cd '" + dir.path().string() + "' && /usr/bin/python3 '" + path + "'").c_str()) == 0;  // NOLINT
}
inline bool has_numpy() {
  static const bool found = std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0;  // NOLINT
  return found;
}

}  // namespace eigenveil::test
