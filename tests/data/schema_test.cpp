// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/schema.hpp"

#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SchemaFile : public testing::Test {
 protected:
  TempDir dir_;

  std::string write(std::string_view text) const { return dir_.write_file("schema.toml", text); }

  void expect_refused(std::string_view text, const std::vector<std::string>& said) const {
    const std::string path = write(text);
    const Result<Schema> schema = read_schema(path);
    ASSERT_FALSE(schema.ok()) << text;
    EXPECT_EQ(schema.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(schema.error().message, HasSubstr(path));
    for (const std::string& words : said) EXPECT_THAT(schema.error().message, HasSubstr(words)) << text;
  }
};

TEST_F(SchemaFile, NumericAndCategoricalColumnsAreRead) {
  const Result<Schema> schema = read_schema(write(R"(
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 120.5
[[column]]
name = "sex"
kind = "categorical"
values = ["F", "M", "unknown"]
other = "unknown"
)"));
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_THAT(schema->names(), ElementsAre("age", "sex"));
  const auto& age = std::get<NumericColumn>(schema->columns[0].kind);
  EXPECT_EQ(age.lower, 0);
  EXPECT_EQ(age.upper, 120.5);
  const std::vector<Categories> categories = schema->categories();
  ASSERT_EQ(categories.size(), 1U);
  EXPECT_EQ(categories[0].column, "sex");
  EXPECT_THAT(categories[0].values, ElementsAre("F", "M", "unknown"));
  EXPECT_EQ(categories[0].other, 2U);
}

TEST_F(SchemaFile, WhatAMissingCellCountsAsAndHowLongCategoriesAreMayBeStated) {
  const Result<Schema> schema = read_schema(write(R"(
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 120
missing = 40
[[column]]
name = "sex"
kind = "categorical"
values = ["F", "M"]
missing = "M"
weight = 2.5
)"));
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_EQ(std::get<NumericColumn>(schema->columns[0].kind).missing, 40);
  EXPECT_EQ(std::get<CategoricalColumn>(schema->columns[1].kind).missing, 1U);
  EXPECT_EQ(std::get<CategoricalColumn>(schema->columns[1].kind).weight, 2.5);
  const std::string number = "[[column]]\nname = 'a'\nkind = 'numeric'\nlower = 0\nupper = 1\n";
  expect_refused(number + "missing = 2\n", {"missing must lie between lower and upper"});
  expect_refused(number + "missing = nan\n", {"missing must lie between lower and upper"});
  expect_refused(number + "missing = 'x'\n", {"line 6", "missing must be a number"});
  expect_refused(number + "weight = 2\n", {"unknown key 'weight'"});
  const std::string list = "[[column]]\nname = 'a'\nkind = 'categorical'\nvalues = ['x', 'y']\n";
  expect_refused(list + "missing = 'z'\n", {"line 5", "missing must be one of the values"});
  for (const char* weight : {"0", "-1", "nan", "inf", "1e7"})
    expect_refused(list + "weight = " + weight + "\n", {"weight must lie between"});
  expect_refused(list + "weight = 'x'\n", {"weight must be a number"});
}

TEST_F(SchemaFile, MissingBoundsSayWhatToFillIn) {
  constexpr const char* kAdvice = "fill in lower and upper: public bounds that you know without looking at the data";
  expect_refused("\n[[column]]\nname = 'a'\nkind = 'numeric'\n", {"line 2", "column 'a'", kAdvice});
  expect_refused("[[column]]\nname = 'a'\nkind = 'numeric'\nlower = 1\n", {"line 1", kAdvice});
  expect_refused("[[column]]\nname = 'a'\nkind = 'categorical'\n", {"line 1", "fill in values"});
}

TEST_F(SchemaFile, BoundsMustBeFiniteAndOrdered) {
  const std::string start = "[[column]]\nname = 'a'\nkind = 'numeric'\n";
  expect_refused(start + "lower = 1\nupper = 1\n", {"line 1", "'a'", "less than upper"});
  expect_refused(start + "lower = 2\nupper = 1\n", {"less than upper"});
  expect_refused(start + "lower = -inf\nupper = 1\n", {"finite"});
  expect_refused(start + "lower = 0\nupper = nan\n", {"finite"});
  expect_refused(start + "lower = '0'\nupper = 1\n", {"line 4", "lower must be a number"});
}

TEST_F(SchemaFile, ValuesMustBeUniqueTextsAndOtherOneOfThem) {
  const std::string start = "[[column]]\nname = 'a'\nkind = 'categorical'\n";
  expect_refused(start + "values = []\n", {"values is empty"});
  expect_refused(start + "values = ['x', 'y', 'x']\n", {"'x' is listed twice"});
  expect_refused(start + "values = [1, 2]\n", {"line 4", "text in quotes"});
  expect_refused(start + "values = 'x'\n", {"fill in values"});
  expect_refused(start + "values = ['x']\nother = 'z'\n", {"line 5", "other must be one of the values"});
  expect_refused(start + "values = ['']\nother = 1\n", {"line 5", "other must be one of the values"});
}

TEST_F(SchemaFile, MisspeltAndMisplacedKeysAreRefused) {
  const std::string numeric = "[[column]]\nname = 'a'\nkind = 'numeric'\nlower = 0\nupper = 1\n";
  expect_refused(numeric + "uper = 3\n", {"line 6", "unknown key 'uper'", "lower, upper"});
  expect_refused(numeric + "values = ['x']\n", {"line 6", "unknown key 'values'"});
  expect_refused("title = 'x'\n" + numeric, {"line 1", "unknown key 'title'"});
  expect_refused("[[columns]]\nname = 'a'\n", {"unknown key 'columns'"});
  expect_refused("[[column]]\nname = 'a'\nkind = 'number'\n", {"line 1", "kind = \"numeric\""});
  expect_refused("[[column]]\nkind = 'numeric'\n", {"line 1", "has no name"});
  expect_refused("[[column]]\nname = ''\nkind = 'numeric'\nlower = 0\nupper = 1\n", {"name is empty"});
  expect_refused(numeric + numeric, {"line 6", "column 'a' was already described in line 1"});
}

TEST_F(SchemaFile, FilesThatAreNoSchemaAreRefused) {
  expect_refused("", {"has no columns"});
  expect_refused("column = 3\n", {"has no columns"});
  expect_refused("column = [1]\n", {"line 1"});
  expect_refused("[[column]]\nname = \n", {"line 2", "not valid TOML"});
  expect_refused("\x93NUMPY", {"not valid TOML"});
  EXPECT_THAT(read_schema(dir_.file("nothing")).error().message, HasSubstr("no such file"));
  EXPECT_THAT(read_schema(dir_.path().string()).error().message, HasSubstr("directory"));
}

TEST_F(SchemaFile, StatesFactsAboutTheLinesOfAFile) {
  const std::string column = "[[column]]\nname = 'a'\nkind = 'numeric'\nlower = 0\nupper = 1\n";
  const auto schema = read_schema(write("header = 'no'\ndelimiter = 'tab'\nfields = 7\n" + column));
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_EQ(schema->header, HeaderRule::kNo);
  EXPECT_EQ(schema->delimiter, '\t');
  EXPECT_EQ(schema->fields, 7U);
  expect_refused("header = 'auto'\n" + column, {"line 1", "header = \"yes\" or header = \"no\""});
  expect_refused("header = true\n" + column, {"line 1", "header ="});
  expect_refused("delimiter = 'comma,'\n" + column, {"line 1", "delimiter must be"});
  expect_refused("fields = 0\n" + column, {"line 1", "fields must be"});
  expect_refused("fields = '3'\n" + column, {"line 1", "fields must be"});
}

TEST_F(SchemaFile, NamesStateAHeaderUnlessARecordCouldHoldThem) {
  EXPECT_EQ(header_named_by({"age", "sex", "a-1"}), HeaderRule::kYes);
  for (const char* name : {"1", "3-5", "-4", "NA", "?", "nan", "1e3", "inf", "+7", "", "null", "0x1p3"}) {
    const bool plain = std::string(name) == "0x1p3";
    EXPECT_EQ(header_named_by({"age", name}), plain ? HeaderRule::kYes : HeaderRule::kUnstated) << name;
  }
  EXPECT_EQ(header_named_by({}), HeaderRule::kUnstated);
}

TEST_F(SchemaFile, ContradictingStatementsAreRefused) {
  Schema schema{{{"age", NumericColumn{0, 1}}}};
  EXPECT_EQ(options_for(schema, {})->header, HeaderRule::kYes);
  EXPECT_EQ(options_for(schema, {.header = HeaderRule::kNo})->header, HeaderRule::kNo) << "stated, not implied";
  schema.header = HeaderRule::kNo;
  schema.delimiter = ';';
  schema.fields = 4;
  const auto options = options_for(schema, {});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->header, HeaderRule::kNo);
  EXPECT_EQ(options->delimiter, ';');
  EXPECT_EQ(options->fields, 4U);
  EXPECT_EQ(options_for(schema, {.header = HeaderRule::kYes}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(options_for(schema, {.delimiter = ','}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(options_for(schema, {.fields = 3}).error().code, ErrorCode::kUsage);
}

TEST_F(SchemaFile, ATemplateHasNamesButNothingOfTheRows) {
  const std::string path = dir_.write_file("t.csv", "age,\"job \"\"x\"\"\",empty\n31337,plumber,?\n,welder,\n");
  const Result<std::string> text = schema_template(path, {.header = HeaderRule::kYes});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("header = \"yes\"\n"));
  EXPECT_THAT(*text, HasSubstr("name = \"age\"\nkind = \"\""));
  EXPECT_THAT(*text, HasSubstr("name = \"job \\\"x\\\"\"\nkind = \"\""));
  EXPECT_THAT(*text, HasSubstr("without looking at the data"));
  for (const char* value : {"31337", "plumber", "welder", "?"}) EXPECT_THAT(*text, Not(HasSubstr(value)));
  const std::string other = dir_.write_file("o.csv", "age,\"job \"\"x\"\"\",empty\ntext,1,2,3,4\n\n");
  EXPECT_EQ(*schema_template(other, {.header = HeaderRule::kYes}), *text) << "no row has a say";
  EXPECT_EQ(schema_template(path, {}).error().code, ErrorCode::kUsage) << "whether there is a header is stated";
}

TEST_F(SchemaFile, ATemplateIsRefusedUntilAPersonHasFilledItIn) {
  const std::string data = dir_.write_file("t.csv", "age,job\n3,plumber\n");
  std::string text = *schema_template(data, {.header = HeaderRule::kYes});
  expect_refused(text, {"column 'age'", "kind = \"numeric\""});
  const auto fill = [&](const std::string& blank, const std::string& filled, std::size_t from = 0) {
    text.replace(text.find(blank, from), blank.size(), filled);
  };
  fill("kind = \"\" #", "kind = \"numeric\" #");
  expect_refused(text, {"fill in lower and upper"});
  fill("# lower =", "lower = 0");
  fill("# upper =", "upper = 120");
  fill("kind = \"\" #", "kind = \"categorical\" #");
  expect_refused(text, {"fill in values"});
  fill("# values = [\"\", \"\"]", "values = [\"plumber\", \"welder\"]", text.find("\"job\""));
  const Result<Schema> schema = read_schema(write(text));
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  const Table table = must_read(data, *options_for(*schema, {}));
  EXPECT_THAT(table.values, ElementsAre(3, 0));
}

TEST_F(SchemaFile, ATemplateHonoursTheSourceOptionsAndItsErrors) {
  const std::string path = dir_.write_file("t.csv", "1;x\n2;y\n");
  const std::string text = *schema_template(path, {.columns = {"2"}, .header = HeaderRule::kNo, .delimiter = ';'});
  EXPECT_THAT(text, HasSubstr("header = \"no\"\nfields = 2\ndelimiter = \";\"\n"));
  EXPECT_THAT(text, HasSubstr("name = \"2\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("name = \"1\"")));
  const std::string array = dir_.write_file("t.npy", npy("<f8", "(1, 2)", std::string(16, '\0')));
  EXPECT_THAT(*schema_template(array, {}), HasSubstr("name = \"2\"\n"));
  EXPECT_THAT(*schema_template(array, {}), Not(HasSubstr("header =")));
  EXPECT_EQ(schema_template(dir_.file("nothing"), {}).error().code, ErrorCode::kBadInput);
}

TEST_F(SchemaFile, NamesWithControlCharactersSurviveTheTemplate) {
  const std::string path = dir_.write_file("t.csv", "\"a\nb\\\",c\n1,2\n");
  std::string text = *schema_template(path, named({.columns = {"1"}}));
  text.replace(text.find("kind = \"\""), 9, "kind = \"numeric\"");
  text.replace(text.find("# lower ="), 9, "lower = 0");
  text.replace(text.find("# upper ="), 9, "upper = 1");
  const Result<Schema> schema = read_schema(write(text));
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_THAT(schema->names(), ElementsAre("a\nb\\"));
}

}  // namespace
}  // namespace eigenveil::test
