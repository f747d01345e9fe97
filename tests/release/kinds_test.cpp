// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/release/report.hpp"
#include "eigenveil/release/transform.hpp"
#include "tests/release/example_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Eigen::Index kDirections = 2;

Eigen::Index length(Extent extent) {
  switch (extent) {
    case Extent::kNone:
    case Extent::kOne:
    case Extent::kFirstView:
      return 1;
    case Extent::kDirections:
      return kDirections;
    case Extent::kFeatures:
      return 4;
    case Extent::kSecondView:
    case Extent::kGroups:
      return 3;
  }
  return 0;
}

/// A model with every array that its kind may have.
Model model_of(const ModelKind& kind) {
  Model model;
  for (const ModelArray& shape : kind.arrays)
    model.arrays.push_back({std::string(shape.name), Matrix::Constant(length(shape.rows), length(shape.columns), 0.5),
                            shape.columns == Extent::kNone});
  model.manifest = {{"model", kind.name}, {"private", true}, {"features", {"a", "b", "c", "d"}}};
  std::vector<ColumnSpec> columns;
  for (const char* name : {"a", "b", "c", "d"}) columns.push_back({name, NumericColumn{-1, 1}});
  model.manifest["columns"] = columns_to_json(columns);
  if (!kind.groups.empty()) model.manifest[std::string(kind.groups)] = {"x", "y", "z"};
  return model;
}

/// What reading the model says, whoever wrote it.
std::string refusal(const Model& model) {
  const TempDir folder;
  EXPECT_TRUE(write_npz(folder.file("m.npz"), model.arrays, {{"manifest.json", model.manifest.dump()}}).ok());
  const auto back = read_model(folder.file("m.npz"));
  return back.ok() ? "accepted" : back.error().message;
}

const ModelArray* shape_of(const ModelKind& kind, std::string_view name) {
  for (const ModelArray& shape : kind.arrays)
    if (shape.name == name) return &shape;
  return nullptr;
}

class Kinds : public testing::TestWithParam<ModelKind> {};

// Two kinds of one name stop the program here.
INSTANTIATE_TEST_SUITE_P(Each, Kinds, testing::ValuesIn(model_kinds()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(Kinds, HaveRowsWhoseWordsBelongTogether) {
  const ModelKind& kind = GetParam();
  EXPECT_FALSE(kind.title.empty() || kind.one.empty() || kind.many.empty());
  bool grouped = false;
  for (const ModelArray& shape : kind.arrays) grouped |= shape.rows == Extent::kGroups;
  EXPECT_EQ(grouped, !kind.groups.empty());
  for (const Scores& scores : kind.scores) {
    const ModelArray* shape = shape_of(kind, scores.directions);
    ASSERT_NE(shape, nullptr) << scores.directions;
    const bool number = kind.prediction == Prediction::kNumber;  // one direction, its array is a vector
    EXPECT_NE(shape->rows == (number ? Extent::kFeatures : Extent::kDirections), shape->columns == Extent::kDirections)
        << scores.directions;
    EXPECT_FALSE(shape->optional);
  }
  if (!kind.values.empty()) {
    ASSERT_NE(shape_of(kind, kind.values), nullptr);
    EXPECT_EQ(shape_of(kind, kind.values)->rows, Extent::kDirections);
    EXPECT_FALSE(kind.value.empty() || kind.meaning.empty());
  }
  for (const std::string_view name : kind.json_arrays) EXPECT_NE(shape_of(kind, name), nullptr) << name;
  for (const Figure& figure : kind.figures)
    EXPECT_TRUE(std::any_of(kind.keys.begin(), kind.keys.end(), [&](const ManifestKey& key) {
      return key.path == figure.key && key.holds == Holds::kNumber;
    })) << figure.key;
}

TEST_P(Kinds, AreWrittenReadDescribedAndProjectedByTheirRow) {
  const ModelKind& kind = GetParam();
  const TempDir folder;
  ASSERT_TRUE(write_model(model_of(kind), folder.file("m.npz")).ok());
  const auto model = read_model(folder.file("m.npz"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(released_in_words(*model), fmt::format(fmt::runtime(kind.many), kDirections));
  EXPECT_THAT(html_report(*model), AllOf(HasSubstr(fmt::format("<h1>{}</h1>", kind.title)),
                                         HasSubstr("This page describes " + released_in_words(*model))));
  if (!kind.values.empty()) {
    EXPECT_THAT(html_report(*model), HasSubstr(std::string(kind.meaning)));
  }
  folder.write_file("rows.csv", "a,b,c,d\n1,0,0,0\n");
  const auto rows = transform(*model, folder.file("rows.csv"), {}, folder.file("scores.csv"));
  ASSERT_EQ(rows.ok(), !kind.scores.empty());
  std::string header;
  for (const Scores& scores : kind.scores)
    for (Eigen::Index k = 1; k <= kDirections && kind.prediction != Prediction::kNumber; ++k)
      header += fmt::format("{}{}{}", header.empty() ? "" : ",", scores.name, k);
  if (kind.prediction == Prediction::kNumber) header = kind.scores.front().name;
  if (rows.ok()) {
    EXPECT_THAT(read_file(folder.file("scores.csv")), StartsWith(header + "\n"));
  }
  EXPECT_EQ(predict(*model, folder.file("rows.csv"), {}, folder.file("classes.csv")).ok(),
            kind.prediction != Prediction::kNone);
}

// A file may hold any finite number in any place, and what is drawn is divided, squared and put on logarithmic axes.
TEST_P(Kinds, AreShownWhateverTheirNumbersAre) {
  const std::vector<double> odd = {std::numeric_limits<double>::denorm_min(),
                                   std::numeric_limits<double>::max(),
                                   -std::numeric_limits<double>::max(),
                                   1e-300,
                                   1e300,
                                   1e-320,
                                   0,
                                   1};
  for (const double first : odd)
    for (const double second : odd) {
      SCOPED_TRACE(fmt::format("{} {}", first, second));
      Model model = model_of(GetParam());
      for (NamedArray& array : model.arrays)
        for (Eigen::Index i = 0; i < array.values.size(); ++i) array.values.data()[i] = i % 2 == 0 ? first : second;
      const json estimated = {{"name", "a"}, {"value", first}, {"lower", second}, {"upper", first}};
      for (const Estimates& estimates : GetParam().estimates)
        model.manifest[std::string(estimates.key)] = json::array({estimated, estimated});
      model.manifest.update({{"noise_edge", second}, {"epsilon", first}, {"delta", second}, {"rows", first}});
      model.manifest["ledger"] = {{"used", true},          {"epsilon", first},      {"delta", 1e-6},
                                  {"spent_before", first}, {"spent_after", second}, {"remaining", first}};
      const std::string page = html_report(model);
      EXPECT_FALSE(std::regex_search(page, std::regex(R"([">:, -]nan[",;% ])")));
    }
}

TEST_P(Kinds, ShowTheirEstimatesInTheReport) {
  const ModelKind& kind = GetParam();
  Model model = model_of(kind);
  const auto estimated = [](const char* name, json value) {
    return json{{"name", name}, {"value", std::move(value)}, {"lower", -1}, {"upper", 2}};
  };
  for (const Estimates& estimates : kind.estimates) {
    ASSERT_TRUE(std::any_of(kind.keys.begin(), kind.keys.end(), [&](const ManifestKey& key) {
      return key.path == estimates.key && (key.holds == Holds::kList || key.holds == Holds::kObject);
    })) << estimates.key;
    model.manifest[std::string(estimates.key)] = json::array({estimated("<age>", 0.25), estimated("sex", nullptr)});
    const std::string page = html_report(model);
    EXPECT_THAT(page, AllOf(HasSubstr("&lt;age&gt;"), HasSubstr("0.25"), HasSubstr("-1 to 2"),
                            HasSubstr("compatible with no effect"), HasSubstr("unknown"),
                            HasSubstr(std::string(kind.meaning))));
    // From a file anything may come.
    for (const json& odd : {json::array({3, "x", json::object(), nullptr}), json::object(), json("x"), json(nullptr)}) {
      model.manifest[std::string(estimates.key)] = odd;
      EXPECT_FALSE(html_report(model).empty());
    }
    model.manifest.erase(std::string(estimates.key));
  }
}

TEST_P(Kinds, RefuseAnArrayThatIsMissingOrOfAnotherShape) {
  const ModelKind& kind = GetParam();
  for (std::size_t i = 0; i < kind.arrays.size(); ++i) {
    const ModelArray& shape = kind.arrays[i];
    SCOPED_TRACE(shape.name);
    Model model = model_of(kind);
    model.arrays.erase(model.arrays.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THAT(refusal(model), HasSubstr(shape.optional ? "accepted" : fmt::format("'{}' is missing", shape.name)));
    model = model_of(kind);
    model.arrays[i].is_vector = !model.arrays[i].is_vector;
    if (shape.columns == Extent::kNone) {
      EXPECT_THAT(refusal(model), HasSubstr(fmt::format("'{}' has", shape.name)));
    }
    for (const auto& [rows, columns] : {std::pair{1, 0}, std::pair{0, 1}}) {
      if (columns == 1 && shape.columns == Extent::kNone) continue;
      model = model_of(kind);
      Matrix& values = model.arrays[i].values;
      values = Matrix::Ones(values.rows() + rows, values.cols() + columns);
      // Nothing but the encoder, which is not at hand, says how wide its head must be.
      const bool free = kind.heads && (columns == 1 ? shape.columns : shape.rows) != Extent::kDirections;
      EXPECT_EQ(refusal(model) == "accepted", free);
    }
  }
}

TEST_P(Kinds, RefuseAManifestWhoseKeysHoldSomethingElse) {
  for (const ManifestKey& key : GetParam().keys) {
    Model model = model_of(GetParam());
    const std::size_t dot = key.path.find('.');
    const std::string outer(key.path.substr(0, dot));
    if (dot == std::string_view::npos)
      model.manifest[outer] = key.holds == Holds::kNumber ? json("x") : json(-7);
    else
      model.manifest[outer] = {{key.path.substr(dot + 1), key.holds == Holds::kNumber ? json("x") : json(-7)}};
    EXPECT_THAT(refusal(model), HasSubstr(fmt::format("'{}' in its manifest is not", key.path)));
  }
}

TEST_P(Kinds, RefuseGroupsWithoutNames) {
  const ModelKind& kind = GetParam();
  if (kind.groups.empty()) return;
  Model model = model_of(kind);
  model.manifest[std::string(kind.groups)].erase(0);
  EXPECT_THAT(refusal(model), HasSubstr(fmt::format("the 3 names of '{}'", kind.groups)));
  model.manifest.erase(std::string(kind.groups));
  EXPECT_THAT(refusal(model), HasSubstr(fmt::format("the 3 names of '{}'", kind.groups)));
}

TEST(Kind, OfAnotherNameHasNothingToReadToProjectOrToShow) {
  for (const json& manifest : {json{{"model", "another"}}, json{{"model", 3}}, json::object(), json::array(), json()}) {
    const ModelKind& kind = kind_of(manifest);
    EXPECT_TRUE(kind.name.empty() && kind.arrays.empty() && kind.scores.empty() && kind.values.empty());
  }
}

/// Release, report and terminal read the table: a kind is added by one row of it.
TEST(Kind, IsComparedByNameInTheTableAlone) {
  std::string names;
  for (const ModelKind& kind : model_kinds()) names += fmt::format("{}{}", names.empty() ? "" : "|", kind.name);
  // Labels of answers, and arrays, may be called like a kind.
  const std::regex compared(fmt::format(R"re([!=]= "({})")re", names));
  const std::regex label(R"re((label|array) == ")re");
  for (const char* roof : {"include", "src", "apps"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(EIGENVEIL_SOURCE_DIR) + "/" + roof)) {
      if (!entry.is_regular_file() || entry.path().filename() == "kinds.cpp") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        EXPECT_FALSE(std::regex_search(line, compared) && !std::regex_search(line, label))
            << entry.path() << ": " << line;
    }
}

}  // namespace
}  // namespace eigenveil::test
