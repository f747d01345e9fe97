// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;

class Csv : public testing::Test {
 protected:
  TempDir dir_;

  std::string csv(std::string_view text) const { return dir_.write_file("t.csv", text); }
};

TEST_F(Csv, NumbersWithAHeaderAreRead) {
  const Table table = must_read(csv("a,b\n1,2.5\n-3e2,.7\n"));
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.values, ElementsAre(1, 2.5, -300, 0.7));
}

TEST_F(Csv, WithoutAHeaderColumnsAreNumbered) {
  const Table table = must_read(csv("1,2\n3,4\n"), {.header = HeaderRule::kNo});
  EXPECT_THAT(table.columns, ElementsAre("1", "2"));
  EXPECT_EQ(table.rows, 2U);
}

TEST_F(Csv, AHeaderIsStatedAndNeverGuessed) {
  for (const char* text : {"a,b\n1,2\n", "1,2\n3,4\n", "unknown,2\n3,4\n", "?,2\n3,4\n", "Private,2\n3,4\n", ""}) {
    const auto source = open_source(csv(text), {});
    ASSERT_FALSE(source.ok()) << text;
    EXPECT_EQ(source.error().code, ErrorCode::kUsage);
    EXPECT_THAT(source.error().message, testing::HasSubstr("`header`"));
    EXPECT_THAT(source.error().message, testing::Not(testing::HasSubstr("Private"))) << "no text of a row in errors";
  }
  EXPECT_EQ(**unstated_first_line(csv("Private,\x1b[2J\r\n1,2\n"), {}), "Private,\x1b[2J");
  EXPECT_FALSE(unstated_first_line(csv("a\n"), named())->has_value());
}

TEST_F(Csv, AHeaderCanBeStatedOrDenied) {
  const std::string path = csv("1,2\n3,4\n");
  EXPECT_THAT(must_read(path, {.header = HeaderRule::kYes}).values, ElementsAre(3, 4));
  expect_refusal(csv("a,b\n1,2\n"), {"row 1 (line 1)", "column '1'", "'a' is not a number", "header"},
                 {.header = HeaderRule::kNo});
}

TEST_F(Csv, TheFirstRowDoesNotDecideHowManyFieldsThereAre) {
  const SourceOptions bare{.header = HeaderRule::kNo};
  expect_refusal(csv("1,2,3\n"), {"one row alone", "`fields`"}, bare);
  expect_refusal(csv(""), {"neither a header nor rows", "`fields`"}, bare);
  SourceOptions forgiving = bare;
  forgiving.bad_rows = BadRows::kMissing;
  expect_refusal(csv("1,2,3\n4,5,6\n"), {"`fields`"}, forgiving, ErrorCode::kUsage);
  forgiving.fields = 3;
  EXPECT_THAT(must_read(csv("1,2\n4,5,6\n"), forgiving).values,
              SameValues(std::vector<double>{kNaN, kNaN, kNaN, 4, 5, 6}));
  EXPECT_EQ(must_read(csv(""), forgiving).rows, 0U);
  EXPECT_EQ(must_read(csv("1,2,3"), {.header = HeaderRule::kNo, .fields = 3}).rows, 1U);
}

// Every way in which a row can be bad costs that row and no other.
TEST_F(Csv, WhatCannotBeReadIsMissingAndTheOtherRowsStay) {
  using namespace std::string_literals;
  SourceOptions options = named({.categories = {{"c", {"x", "y"}}}});
  options.bad_rows = BadRows::kMissing;
  for (const std::string& bad : {"tall,0,x"s, "nan,0,x"s, "1,0,z"s, "1"s, ""s, "  "s, "1,2,x,4"s, "\"1\"2,0,x"s,
                                 "1,0,x\0"s, "\"a\nb\"c,\"0,x"s, "1,0,\"x\" y"s, ",,"s, "1e,0,x"s}) {
    SCOPED_TRACE(bad);
    for (const std::string& end : {"\n"s, "\r\n"s, "\r"s})
      for (const int place : {0, 1, 2}) {
        std::string text = "a,b,c" + end;
        for (int i = 0; i < 3; ++i) text += (i == place ? bad : "3,4,y") + end;
        const Table table = must_read(csv(text), options);
        ASSERT_EQ(table.rows, 3U);
        for (std::size_t i = 0; i < 3; ++i) {
          const double sum = table.at(i, 0) + table.at(i, 1) + table.at(i, 2);
          EXPECT_EQ(std::isnan(sum), i == static_cast<std::size_t>(place)) << i;
          EXPECT_TRUE(std::isnan(sum) || sum == 8) << sum;
        }
      }
  }
}

// A record that never ends costs itself: what follows it, if anything does, is read as ever.
TEST_F(Csv, AQuoteThatIsNeverClosedAndALineWithoutEndAreRowsThatCannotBeRead) {
  SourceOptions options = named({});
  options.bad_rows = BadRows::kMissing;
  for (const std::string end : {"", "\n", "\r\n", "x\n1,2\n"}) {
    const Table table = must_read(csv("a,b\n1,2\n3,\"4" + end), options);
    EXPECT_THAT(table.values, SameValues(std::vector<double>{1, 2, kNaN, kNaN})) << end;
  }
  const std::string digits(std::size_t{70} << 20, '4');
  for (const std::string& bad : {"3," + digits, "3,\"" + digits, "3,\"4\"" + digits, digits + ",\"" + digits}) {
    const Table table = must_read(csv("a,b\n1,2\n" + bad + "\n5,6\n"), options);
    EXPECT_THAT(table.values, SameValues(std::vector<double>{1, 2, kNaN, kNaN, 5, 6})) << bad.substr(0, 8);
  }
  expect_refusal(csv("a,b\n1,2\n3,\"4\n"), {"a quote is opened but never closed"});
}

TEST_F(Csv, EveryLineIsARow) {
  expect_refusal(csv("a,b\n1,2\n\n3,4\n"), {"row 2 (line 3) is blank", "zero-row"});
  expect_refusal(csv("a,b\n1,2\n3,4\n \n"), {"row 3 (line 4) is blank"});
  expect_refusal(csv("\na,b\n1,2\n"), {"first line is blank", "names"});
  EXPECT_THAT(must_read(csv("a\n1\n\n3\n")).values, SameValues(std::vector<double>{1, kNaN, 3})) << "one column";
}

TEST_F(Csv, LineEndsMayBeLfCrlfOrCrAndTheLastMayBeMissing) {
  for (const char* text : {"a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "a,b\r\n1,2\r\n3,4",
                           "\xef\xbb\xbf\x61,b\n1,2\n3,4\n"}) {
    const Table table = must_read(csv(text));
    EXPECT_THAT(table.columns, ElementsAre("a", "b")) << text;
    EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4)) << text;
  }
}

TEST_F(Csv, TheDelimiterIsStatedAndAComma) {
  for (const char c : {';', '\t', '|', ' '})
    EXPECT_THAT(must_read(csv(fmt::format("a{0}b\n1{0}2\n", c)), named({.delimiter = c})).values, ElementsAre(1, 2));
  EXPECT_THAT(must_read(csv("a;b;c,d\n1;2;3,4\n"), named({.columns = {"d"}})).values, ElementsAre(4));
  expect_refusal(csv("1;2\n3;4\n"), {"'1;2' is not a number", "`delimiter`"}, {.header = HeaderRule::kNo});
}

TEST_F(Csv, ADelimiterThatOccursInNumbersIsRefused) {
  for (char c : {'1', '.', '-', '"', '\n', 'e'})
    expect_refusal(csv("a,b\n1,2\n"), {"delimiter"}, named({.delimiter = c}), ErrorCode::kUsage);
}

TEST_F(Csv, QuotesFollowRfc4180) {
  const Table table = must_read(csv("\"a \"\"x\"\"\",\"b\nc\"\n\"1\",\" 2\"\n\"3\" , \"4\"\n"));
  EXPECT_THAT(table.columns, ElementsAre("a \"x\"", "b\nc"));
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
}

TEST_F(Csv, MissingAndInfiniteValuesAreKeptApart) {
  const Table table =
      must_read(csv("a,b,c,d,e,f,g\n,?,na,NaN,NULL,\"\",\"NA\"\ninf,-Inf,+1,Infinity,1e999,-1e999,1e-999\n"));
  EXPECT_THAT(table.values, SameValues(std::vector<double>{kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, kInf, -kInf, 1,
                                                           kInf, kInf, -kInf, 0}));
}

TEST_F(Csv, EveryDoubleIsReadBackExactly) {
  std::mt19937_64 random(7);
  std::vector<double> wanted;
  std::string text = "x,y\n";
  while (wanted.size() < 20'000) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    text += digits;
    text += wanted.size() % 2 == 0 ? "," : "\n";
    wanted.push_back(value);
  }
  EXPECT_EQ(must_read(csv(text)).values, wanted);
}

TEST_F(Csv, BatchSizeDoesNotMatter) {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 500; ++i)
    text += std::to_string(i) + "," + std::to_string(i * 0.5) + ",\"" + std::to_string(-i) + "\"\n";
  const std::string path = csv(text);
  const Table whole = must_read(path, named(), SIZE_MAX);
  EXPECT_EQ(whole.rows, 500U);
  for (std::size_t size : {1U, 2U, 7U, 499U, 500U, 501U})
    EXPECT_EQ(must_read(path, named(), size).values, whole.values);
}

// Rows of every length cross the ends of the window at every place; a number cut in two would change the sum.
TEST_F(Csv, RowsAcrossWindowsAreWhole) {
  for (std::size_t shift = 0; shift < 60; ++shift) {
    std::string text = "name,\"b\"\"\r\nc\"\r\n";
    text.insert(4, shift, 'x');
    std::vector<double> wanted;
    while (text.size() < (std::size_t{1} << 20) + 200) {
      const auto i = static_cast<double>(wanted.size());
      wanted.push_back(i + 0.125);
      wanted.push_back(-i);
      text += std::to_string(i + 0.125) + " , \"" + std::to_string(-i) + "\" \r\n";
    }
    ASSERT_EQ(must_read(csv(text), named(), 100'000).values, wanted) << shift;
    const std::size_t row = wanted.size() / 2 + 1;  // the header takes two lines
    expect_refusal(csv(text + "1,x\n"), {fmt::format("row {} (line {})", row, row + 2)});
  }
}

TEST_F(Csv, ARowLongerThanTheWindowIsRead) {
  std::string text;
  constexpr std::size_t kColumns = 400'000;
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < kColumns; ++i) text += std::to_string(i + row) + (i + 1 < kColumns ? "," : "\n");
  }
  const Table table = must_read(csv(text), {.header = HeaderRule::kNo});
  EXPECT_EQ(table.columns.size(), kColumns);
  EXPECT_EQ(table.at(1, kColumns - 1), static_cast<double>(kColumns));
}

TEST_F(Csv, CategoriesBecomeTheirIndex) {
  const std::string path = csv("id,colour\n1,red\n2, blue \n3,\"red\"\n4,?\n");
  const SourceOptions options = named({.categories = {{"colour", {"blue", "red"}}}});
  EXPECT_THAT(must_read(path, options).values, SameValues(std::vector<double>{1, 1, 2, 0, 3, 1, 4, kNaN}));
  const SourceOptions listed = named({.categories = {{"colour", {"blue", "red", "?"}}}});
  EXPECT_EQ(must_read(path, listed).at(3, 1), 2);
}

TEST_F(Csv, CategoriesThatAreNumbersMatchByValueIfTheTextDoesNot) {
  const SourceOptions options = named({.categories = {{"sex", {"0", "1", "1.0"}}}});
  EXPECT_THAT(must_read(csv("sex\n0.0\n1\n1.0\n1.00\n"), options).values, ElementsAre(0, 1, 2, 1));
}

TEST_F(Csv, AnUnlistedCategoryIsAnErrorUnlessThereIsAnOther) {
  const std::string path = csv("id,colour\n1,red\n2,\"gr\neen\"\n3,pink\n");
  expect_refusal(path, {"row 2 (line 3)", "column 'colour'", "'gr\\x0aeen'", "'red'"},
                 named({.categories = {{"colour", {"red"}}}}));
  EXPECT_THAT(must_read(path, named({.categories = {{"colour", {"red", "rest"}, 1}}})).values,
              ElementsAre(1, 0, 2, 1, 3, 1));
  expect_refusal(path, {"row 3 (line 5)", "'pink'"}, named({.categories = {{"colour", {"red", "gr\neen"}}}}));
}

TEST_F(Csv, TextInANumericColumnNamesRowLineColumnAndText) {
  expect_refusal(csv("a,b\n1,2\n3,x7\n"), {"row 2 (line 3)", "column 'b'", "'x7' is not a number"});
  for (const char* text : {"1.2.3", "1e", "0x10", "--1", "+-1", "1 2", "nancy", "infinit", "1_0"})
    expect_refusal(csv("a,b\n1," + std::string(text) + "\n"), {"row 1 (line 2)", "column 'b'", text});
}

TEST_F(Csv, TextInAColumnThatIsNotUsedIsFine) {
  EXPECT_THAT(must_read(csv("a,b,c\n1,x,2\n"), named({.columns = {"c", "a"}})).values, ElementsAre(2, 1));
}

TEST_F(Csv, RaggedRowsAreRefused) {
  expect_refusal(csv("a,b,c\n1,2,3\n4,5\n"), {"row 2 (line 3) has 2 fields", "header has 3"});
  expect_refusal(csv("1,2,3\n1,2,3,4,5\n"), {"row 2 (line 2) has 5 fields", "there are to be 3"},
                 {.header = HeaderRule::kNo});
  expect_refusal(csv("a,b,c\n1,x\n"), {"has 2 fields"});
}

TEST_F(Csv, FilesWithoutRowsHaveNone) {
  for (const char* text : {"a,b\n", "a,b", "\xef\xbb\xbf\x61,b\r\n"}) {
    const Table table = must_read(csv(text));
    EXPECT_THAT(table.columns, ElementsAre("a", "b"));
    EXPECT_EQ(table.rows, 0U);
  }
  expect_refusal(csv(""), {"is empty", "names"});
  expect_refusal(csv("\xef\xbb\xbf"), {"is blank", "names"});
}

TEST_F(Csv, QuotesThatDoNotCloseAreRefused) {
  expect_refusal(csv("a,b\n1,2\n3,\"4\n5,6\n"), {"row 2 (line 3)", "quote", "never closed"});
  expect_refusal(csv("a,\"b\n1,2\n"), {"line 1", "never closed"});
  expect_refusal(csv("a,b\n1,\"2\"3\n"), {"row 1 (line 2)", "column 'b'", "closing quote"});
}

TEST_F(Csv, NulBytesAndBinaryFilesAreRefused) {
  using namespace std::string_literals;
  expect_refusal(csv("a,b\n1,2\n3,\0004\n"s), {"row 2 (line 3)", "column 'b'", "NUL"});
  expect_refusal(csv("a,b\n1,\"2\0\"\n"s), {"row 1 (line 2)", "NUL"});
  expect_refusal(csv("a,b\n1,x\0\n"s), {"row 1 (line 2)", "NUL"}, named({.columns = {"a"}}));
  expect_refusal(csv("\x7f"
                     "ELF\2\1\1\0\0\0"s),
                 {"not a text file", "expected CSV"});
  expect_refusal(csv("\xff\xfe"
                     "a\0,\0b\0"s),
                 {"UTF-16"});
}

TEST_F(Csv, ColumnsAreChosenByNamePositionAndRange) {
  const std::string path = csv("a,b,c,2\n1,2,3,4\n");
  EXPECT_THAT(must_read(path, named({.columns = {"c", "1"}})).columns, ElementsAre("c", "a"));
  EXPECT_THAT(must_read(path, named({.columns = {"2"}})).values, ElementsAre(4)) << "a name comes before a position";
  EXPECT_THAT(must_read(path, named({.columns = {"1-3"}})).values, ElementsAre(1, 2, 3));
}

TEST_F(Csv, UnknownAndDoubledColumnsAreRefused) {
  const std::string path = csv("a,b,c\n1,2,3\n");
  expect_refusal(path, {"no column 'z'", "'a', 'b', 'c'"}, named({.columns = {"a", "z"}}));
  for (const char* wanted : {"0", "4", "2-4", "3-1", "-1", "1-", "99999999999999999999"})
    expect_refusal(path, {"no column '" + std::string(wanted) + "'"}, named({.columns = {wanted}}));
  expect_refusal(path, {"column 'b'", "twice"}, named({.columns = {"b", "1-3"}}));
  expect_refusal(path, {"no column 'z'"}, named({.categories = {{"z", {"1"}}}}));
  expect_refusal(path, {"given twice"}, named({.categories = {{"a", {"1"}}, {"1", {"1"}}}}), ErrorCode::kUsage);
  expect_refusal(path, {"empty"}, named({.categories = {{"a", {}}}}), ErrorCode::kUsage);
  expect_refusal(path, {"other"}, named({.categories = {{"a", {"1"}, 1}}}), ErrorCode::kUsage);
}

TEST_F(Csv, DoubledNamesCanBeChosenByPositionOnly) {
  const std::string path = csv("a,b,a\n1,2,3\n");
  expect_refusal(path, {"column 'a'", "twice"});
  expect_refusal(path, {"more than one column 'a'", "position"}, named({.columns = {"a"}}));
  EXPECT_THAT(must_read(path, named({.columns = {"2-3"}})).values, ElementsAre(2, 3));
}

TEST_F(Csv, GzipIsToldByContentAndMayHaveSeveralMembers) {
  const std::string packed = gzip("a,b\n1,2\n") + gzip("") + gzip("3,4\n") + std::string(100, '\0');
  EXPECT_THAT(must_read(dir_.write_file("plain-name.csv", packed)).values, ElementsAre(1, 2, 3, 4));
}

TEST_F(Csv, DamagedGzipIsRefused) {
  std::string text = "a,b\n";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * i) + ",2\n";
  const std::string packed = gzip(text);
  for (std::size_t cut : {packed.size() - 1, packed.size() - 8, packed.size() / 2, std::size_t{10}, std::size_t{3}})
    expect_refusal(dir_.write_file("cut.csv.gz", packed.substr(0, cut)), {"truncated"});
  std::string flipped = packed;
  flipped[packed.size() - 6] = static_cast<char>(flipped[packed.size() - 6] ^ 1);  // in the checksum
  expect_refusal(dir_.write_file("crc.csv.gz", flipped), {"damaged"});
  expect_refusal(dir_.write_file("tail.csv.gz", packed + "tail"), {"follow the gzip data"});
  expect_refusal(dir_.write_file("empty.csv.gz", gzip("")), {"is empty"});
  expect_refusal(dir_.write_file("text.csv.gz", "a,b\n1,2\n"), {"gzip"});
  expect_refusal(dir_.write_file("twice.csv.gz", gzip(packed)), {"unpack"});
}

/// A field of characters that CSV readers stumble over, and whether it must be quoted.
std::pair<std::string, bool> nasty_field(std::mt19937& random) {
  static constexpr std::string_view kCharacters = "ab,\"\n\r; 1.\t|'#\\";
  std::string text;
  for (std::size_t i = random() % 7; i > 0; --i) text += kCharacters[random() % kCharacters.size()];
  const bool special = text.find_first_of(",\"\n\r \t") != std::string::npos || text.empty();
  return {text, special};
}

// Python's csv module is the referee: it reads the same file, and every field must come out with the same text.
TEST_F(Csv, AgreesWithPythonOnNastyFiles) {
  if (!has_numpy()) GTEST_SKIP() << "no /usr/bin/python3";
  std::mt19937 random(11);
  constexpr std::size_t kColumns = 4;
  std::string text = "c1,c2,c3,c4\r\n";
  for (std::size_t row = 0; row < 3000; ++row)
    for (std::size_t c = 0; c < kColumns; ++c) {
      const auto [field, special] = nasty_field(random);
      std::string doubled;
      for (char ch : field) doubled += ch == '"' ? std::string("\"\"") : std::string(1, ch);
      text += special || random() % 4 == 0 ? '"' + doubled + '"' : field;
      text += c + 1 < kColumns ? "," : random() % 2 == 0 ? "\n" : "\r\n";
    }
  const std::string path = csv(text);
  ASSERT_TRUE(run_python(dir_,
                         "import csv\nout = open('fields.txt', 'w')\n"
                         "for row in list(csv.reader(open('t.csv', newline='')))[1:]:\n"
                         "    for field in row: print(field.encode().hex(), file=out)\n"));
  std::vector<std::string> wanted;
  std::istringstream lines(read_file(dir_.file("fields.txt")));
  for (std::string line; std::getline(lines, line);) {
    std::string field;
    for (std::size_t i = 0; i < line.size(); i += 2)
      field += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    wanted.push_back(field);
  }
  ASSERT_EQ(wanted.size(), 3000 * kColumns);

  std::vector<std::string> values(wanted);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  SourceOptions options = named({.delimiter = ','});
  for (const char* name : {"c1", "c2", "c3", "c4"}) options.categories.push_back({name, values});
  const Table table = must_read(path, options);
  ASSERT_EQ(table.values.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(table.values[i])], wanted[i]) << "field " << i;
}

TEST_F(Csv, AdultCensusIsRead) {
  const std::string path = shared_data("adult.data");
  if (path.empty()) GTEST_SKIP() << "no shared data sets beside this checkout";
  const SourceOptions options{.columns = {"1", "3", "10", "15"},
                              .categories = {{"10", {"Female", "Male"}}, {"15", {"<=50K", ">50K"}}},
                              .header = HeaderRule::kNo,
                              .fields = 15};
  const Table table = must_read(path, options);
  EXPECT_EQ(table.rows, 32'561U);
  double rich = 0;
  for (std::size_t r = 0; r < table.rows; ++r) rich += table.at(r, 3);
  EXPECT_EQ(rich, 7841);
  EXPECT_THAT(std::vector<double>(table.values.begin(), table.values.begin() + 4), ElementsAre(39, 77516, 1, 0));
}

TEST_F(Csv, CovertypeIsRead) {
  const std::string path = shared_data("covertype-93k.csv.gz");
  if (path.empty()) GTEST_SKIP() << "no shared data sets beside this checkout";
  const Table table = must_read(path);
  EXPECT_EQ(table.rows, 92'962U);
  EXPECT_EQ(table.columns.size(), 55U);
  for (std::size_t r = 0; r < table.rows; ++r) {
    double soils = 0;
    for (std::size_t c = 14; c < 54; ++c) soils += table.at(r, c);
    ASSERT_EQ(soils, 1) << "row " << r;
  }
}

TEST_F(Csv, HeartDiseaseHasMissingValues) {
  if (shared_data("heart/cleveland.csv").empty()) GTEST_SKIP() << "no shared data sets beside this checkout";
  std::size_t rows = 0;
  std::size_t missing = 0;
  for (const char* hospital : {"cleveland", "hungarian", "switzerland", "va"}) {
    const Table table =
        must_read(shared_data("heart/" + std::string(hospital) + ".csv"), named({.categories = {{"sex", {"0", "1"}}}}));
    rows += table.rows;
    EXPECT_EQ(table.columns.size(), 14U);
    for (double value : table.values) missing += std::isnan(value) ? 1 : 0;
  }
  EXPECT_EQ(rows, 303U + 294U + 123U + 200U);
  EXPECT_GT(missing, 1000U);
}

}  // namespace
}  // namespace eigenveil::test
