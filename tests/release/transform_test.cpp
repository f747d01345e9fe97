// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/transform.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/release/example_model.hpp"
#include "tests/release/python.hpp"

namespace eigenveil {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace eigenveil::test;  // NOLINT(google-build-using-namespace)

struct Person {
  double height;
  double weight;
  bool female;
};

/// score_k = sum_j ((clamp(row_j) - offset_j) * scale_j - mean_j) * components_kj, written out.
std::vector<double> scores_of(Model& model, const Person& person) {
  const std::vector<double> raw = {std::min(std::max(person.height, 100.0), 200.0),
                                   std::min(std::max(person.weight, 20.0), 100.0), person.female ? 1.0 : 0.0,
                                   person.female ? 0.0 : 1.0};
  std::vector<double> scores;
  for (Eigen::Index k = 0; k < 2; ++k) {
    double score = 0;
    for (Eigen::Index j = 0; j < 4; ++j) {
      const double feature =
          (raw[static_cast<std::size_t>(j)] - array_of(model, "offset")(j)) * array_of(model, "scale")(j);
      score += (feature - array_of(model, "mean")(j)) * array_of(model, "components")(k, j);
    }
    scores.push_back(score);
  }
  return scores;
}

std::vector<Person> people(std::size_t count) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> height(80, 220);
  std::uniform_real_distribution<double> weight(10, 120);
  std::vector<Person> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({height(random), weight(random), random() % 2 == 0});
  return result;
}

std::string csv_of(const std::vector<Person>& rows) {
  std::string text = "sex,note,weight,height\n";
  for (const auto& row : rows) {
    text += fmt::format("{},x,{},{}\n", row.female ? "F" : "M", row.weight, row.height);
  }
  return text;
}

/// Numbers of a CSV file after its header.
std::vector<std::vector<double>> parse_csv(const std::string& text) {
  std::vector<std::vector<double>> rows;
  std::stringstream lines(text);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    rows.emplace_back();
    std::stringstream fields(line);
    std::string field;
    while (std::getline(fields, field, ',')) rows.back().push_back(std::stod(field));
  }
  return rows;
}

TEST(Transform, ProjectsClampedAndCategoricalColumnsByNameWhateverTheirOrder) {
  const TempDir folder;
  Model model = example_model();
  const auto rows = people(20000);  // several batches
  folder.write_file("people.csv", csv_of(rows));
  double last_progress = 0;
  const auto written = transform(model, folder.file("people.csv"), {}, folder.file("scores.csv"),
                                 [&](double share) { last_progress = share; });
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(*written, rows.size());
  EXPECT_GT(last_progress, 0.99);
  const std::string text = read_file(folder.file("scores.csv"));
  EXPECT_THAT(text, StartsWith("pc1,pc2\n"));
  const auto scores = parse_csv(text);
  ASSERT_EQ(scores.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto expected = scores_of(model, rows[i]);
    ASSERT_EQ(scores[i].size(), 2);
    for (std::size_t k = 0; k < 2; ++k) ASSERT_NEAR(scores[i][k], expected[k], 1e-14) << "row " << i;
  }
}

TEST(Transform, WritesTheSameNumbersAsCsvAndAsNpy) {
  const TempDir folder;
  const Model model = example_model();
  folder.write_file("people.csv", csv_of(people(9000)));
  ASSERT_TRUE(transform(model, folder.file("people.csv"), {}, folder.file("s.csv")).ok());
  ASSERT_TRUE(transform(model, folder.file("people.csv"), {}, folder.file("s.npy")).ok());
  const auto ran = run_python(folder, R"(
import sys, numpy
csv = numpy.loadtxt(sys.argv[1], delimiter=",", skiprows=1)
npy = numpy.load(sys.argv[2])
assert npy.dtype == numpy.float64 and npy.shape == (9000, 2), (npy.dtype, npy.shape)
assert (csv == npy).all()
)",
                              {folder.file("s.csv"), folder.file("s.npy")});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

/// A model of two unbounded columns, as made from a file without names.
Model unbounded_model() {
  Model model = example_model();
  model.manifest["features"] = {"1", "2"};
  model.manifest["columns"] =
      columns_to_json({{"1", NumericColumn{-INFINITY, INFINITY}}, {"2", NumericColumn{-INFINITY, INFINITY}}});
  array_of(model, "components") = (Matrix(2, 2) << 0.6, 0.8, -0.8, 0.6).finished();
  array_of(model, "mean") = (Matrix(2, 1) << 1, -2).finished();
  array_of(model, "offset") = (Matrix(2, 1) << 0.5, 0.25).finished();
  array_of(model, "scale") = (Matrix(2, 1) << 3, 4).finished();
  return model;
}

TEST(Transform, AgreesWithNumpyOnTheModelFileAndTheSameCsv) {
  const TempDir folder;
  ASSERT_TRUE(write_model(unbounded_model(), folder.file("model.npz")).ok());
  std::string csv;
  for (const auto& person : people(500)) csv += fmt::format("{},{}\n", person.height, person.weight);
  folder.write_file("rows.csv", csv);
  const auto model = read_model(folder.file("model.npz"));
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(transform(*model, folder.file("rows.csv"), {.header = HeaderRule::kNo}, folder.file("scores.npy")).ok());
  const auto ran = run_python(folder, R"(
import sys, numpy
m = numpy.load(sys.argv[1])
rows = numpy.loadtxt(sys.argv[2], delimiter=",")
scores = ((rows - m["offset"]) * m["scale"] - m["mean"]) @ m["components"].T
assert numpy.abs(scores - numpy.load(sys.argv[3])).max() < 1e-11
)",
                              {folder.file("model.npz"), folder.file("rows.csv"), folder.file("scores.npy")});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST(Transform, TakesAFileWithoutNamesByPosition) {
  const TempDir folder;
  Model model = example_model();
  folder.write_file("people.csv", "170,70,F\n150,90,M\n");
  SourceOptions options;
  options.header = HeaderRule::kNo;
  const auto written = transform(model, folder.file("people.csv"), options, folder.file("scores.csv"));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto scores = parse_csv(read_file(folder.file("scores.csv")));
  ASSERT_EQ(scores.size(), 2);
  EXPECT_NEAR(scores[0][0], scores_of(model, {170, 70, true})[0], 1e-14);
  EXPECT_NEAR(scores[1][1], scores_of(model, {150, 90, false})[1], 1e-14);
}

TEST(Transform, TakesColumnsTheCallerChoseByPosition) {
  const TempDir folder;
  Model model = example_model();
  folder.write_file("people.csv", "gender,cm,kg,id\nF,170,70,1\nM,150,90,2\n");
  SourceOptions options{.columns = {"cm", "kg", "gender"}, .header = HeaderRule::kYes};
  const auto written = transform(model, folder.file("people.csv"), options, folder.file("scores.csv"));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto scores = parse_csv(read_file(folder.file("scores.csv")));
  EXPECT_NEAR(scores.at(1)[0], scores_of(model, {150, 90, false})[0], 1e-14);
}

/// The error of a transform that must fail; checks that it left nothing but what was there.
Error refusal(const std::string& csv, const std::string& out = "scores.csv", const SourceOptions& options = {},
              const Model& model = example_model()) {
  const TempDir folder;
  folder.write_file("people.csv", csv);
  const auto written = transform(model, folder.file("people.csv"), options, folder.file(out));
  EXPECT_THAT(folder.names(), ElementsAre("people.csv"));
  EXPECT_EQ(read_file(folder.file("people.csv")), csv);
  EXPECT_FALSE(written.ok());
  return written.ok() ? internal_error("accepted") : written.error();
}

void expect_refusal(const Error& error, ErrorCode code, const std::vector<std::string>& words) {
  EXPECT_EQ(error.code, code) << error.message;
  for (const auto& word : words) EXPECT_THAT(error.message, HasSubstr(word));
}

/// A model of two classes with these names, the first around -1 and the second around 1.
Model classes_model(const std::string& low, const std::string& high) {
  Model model;
  model.arrays = {{"scalings", Matrix::Ones(1, 1)},   {"eigenvalues", Matrix::Ones(1, 1), true},
                  {"class_means", Matrix(2, 1)},      {"priors", Matrix::Constant(2, 1, 0.5), true},
                  {"mean", Matrix::Zero(1, 1), true}, {"offset", Matrix::Zero(1, 1), true},
                  {"scale", Matrix::Ones(1, 1), true}};
  array_of(model, "class_means") << -1, 1;
  model.manifest = {{"model", "fda"},
                    {"features", {"x"}},
                    {"columns", columns_to_json({{"x", NumericColumn{-9, 9}}})},
                    {"classes", {low, high}}};
  return model;
}

TEST(Predict, WritesNoFormulaIntoASpreadsheet) {
  const TempDir folder;
  folder.write_file("x.csv", "x\n-1\n1\n");
  const std::vector<std::pair<std::string, std::string>> cells = {
      {"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
      {"=1+1", "'=1+1"},
      {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"},
      {"-2+3", "'-2+3"},
      {"@SUM(A1)", "'@SUM(A1)"},
      {"\tx", "\"'\tx\""},
      {"\rx", "\"'\rx\""},
      {"-1", "-1"},
      {"+7.5", "+7.5"},
      {"ill, or well", "\"ill, or well\""},
      {"well", "well"}};
  for (const auto& [label, cell] : cells) {
    ASSERT_TRUE(predict(classes_model(label, "other"), folder.file("x.csv"), {}, folder.file("out.csv")).ok());
    EXPECT_EQ(read_file(folder.file("out.csv")), "class\n" + cell + "\nother\n");
  }
}

TEST(Transform, TheFirstLineOfAFileIsStatedByTheModelsNamesOrByTheCaller) {
  const TempDir folder;
  folder.write_file("rows.csv", "1,2\n3,4\n");
  const auto unstated = transform(unbounded_model(), folder.file("rows.csv"), {}, folder.file("s.npy"));
  ASSERT_FALSE(unstated.ok());
  EXPECT_EQ(unstated.error().code, ErrorCode::kUsage) << "columns 1 and 2 could be positions or a first row";
  EXPECT_EQ(header_named_by_model(unbounded_model()), HeaderRule::kUnstated);
  EXPECT_EQ(header_named_by_model(example_model()), HeaderRule::kYes);
}

TEST(Transform, NamesTheColumnsThatAFileLacks) {
  expect_refusal(refusal("height,age\n170,30\n"), ErrorCode::kBadInput, {"people.csv", "'weight', 'sex'", "Missing"});
  expect_refusal(refusal("a,b,c\n170,70,F\n"), ErrorCode::kBadInput, {"'height', 'weight', 'sex'"});
  SourceOptions headless;
  headless.header = HeaderRule::kNo;
  expect_refusal(refusal("170,70\n", "scores.csv", headless), ErrorCode::kBadInput, {"row 1", "2 fields", "to be 3"});
}

TEST(Transform, NamesRowAndColumnOfAMissingValue) {
  expect_refusal(refusal("height,weight,sex\n170,70,F\n160,,M\n"), ErrorCode::kBadInput,
                 {"people.csv", "row 2", "'weight'", "missing"});
  expect_refusal(refusal("height,weight,sex\n170,70,F\n160,60,\n"), ErrorCode::kBadInput, {"row 2", "'sex'"});
  expect_refusal(refusal("height,weight,sex\n170,70,F\ninf,60,M\n"), ErrorCode::kBadInput, {"row 2", "height"});
}

TEST(Transform, LeavesNoFileWhenARowLateInTheDataIsWrong) {
  std::string csv = csv_of(people(20000)) + "X,x,50,150\n";
  expect_refusal(refusal(csv), ErrorCode::kBadInput, {"X", "sex"});
  expect_refusal(refusal(csv, "scores.npy"), ErrorCode::kBadInput, {"X", "sex"});
}

TEST(Transform, RefusesOutputsItCannotWrite) {
  const std::string csv = "height,weight,sex\n170,70,F\n";
  expect_refusal(refusal(csv, "scores.txt"), ErrorCode::kUsage, {"scores.txt", ".csv or .npy"});
  expect_refusal(refusal(csv, "scores"), ErrorCode::kUsage, {".csv or .npy"});
  expect_refusal(refusal(csv, "none/scores.csv"), ErrorCode::kUsage, {"folder does not exist"});
  expect_refusal(refusal(csv, "people.csv"), ErrorCode::kUsage, {"would replace the data"});
}

TEST(Transform, RefusesAModelThatCannotProject) {
  const std::string csv = "height,weight,sex\n170,70,F\n";
  Model model = example_model();
  model.manifest.erase("columns");
  expect_refusal(refusal(csv, "s.csv", {}, model), ErrorCode::kBadInput, {"'columns'"});
  Model covariance;
  covariance.manifest = {{"model", "covariance"}};
  expect_refusal(refusal(csv, "s.csv", {}, covariance), ErrorCode::kBadInput, {"'components' is missing"});
  model = example_model();
  model.manifest["model"] = "fda";
  expect_refusal(refusal(csv, "s.csv", {}, model), ErrorCode::kBadInput, {"'scalings' is missing"});
  model = example_model();
  array_of(model, "scale") = Matrix::Ones(3, 1);
  expect_refusal(refusal(csv, "s.csv", {}, model), ErrorCode::kBadInput, {"'scale' has 3 numbers"});
  model = example_model();
  model.manifest["model"] = "another";
  expect_refusal(refusal(csv, "s.csv", {}, model), ErrorCode::kBadInput, {"no scores under a model 'another'", "pca"});
}

}  // namespace
}  // namespace eigenveil
