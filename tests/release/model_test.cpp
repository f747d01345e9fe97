// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eigenveil/data/npz.hpp"
#include "tests/release/example_model.hpp"
#include "tests/release/python.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace eigenveil::test;  // NOLINT(google-build-using-namespace)

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Model, ReturnsArraysAndManifestAsWritten) {
  const TempDir folder;
  const Model model = example_model();
  ASSERT_TRUE(write_model(model, folder.file("m.npz")).ok());
  const auto back = read_model(folder.file("m.npz"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->manifest, model.manifest);
  ASSERT_EQ(back->arrays.size(), model.arrays.size());
  for (const auto& array : model.arrays) EXPECT_EQ(*back->array(array.name), array.values) << array.name;
  EXPECT_EQ(back->array("loadings"), nullptr);
}

TEST(Model, WrittenTwiceGivesTheSameBytes) {
  const TempDir folder;
  ASSERT_TRUE(write_model(example_model(), folder.file("a.npz")).ok());
  ASSERT_TRUE(write_model(example_model(), folder.file("b.npz")).ok());
  EXPECT_EQ(read_file(folder.file("a.npz")), read_file(folder.file("b.npz")));
}

TEST(Model, OfAnotherKindNeedsNoComponents) {
  const TempDir folder;
  Model model;
  model.manifest = {{"model", "another"}};
  model.arrays = {{"something", Matrix::Identity(3, 3), false}};
  ASSERT_TRUE(write_model(model, folder.file("m.npz")).ok());
  EXPECT_TRUE(read_model(folder.file("m.npz")).ok());
}

TEST(Model, KeepsAReleaseWhoseColumnNamesAreNotUtf8) {
  const TempDir folder;
  Model model = example_model();
  model.manifest["features"][0] =
      "gr\xf6\xdf"
      "e";
  ASSERT_TRUE(write_model(model, folder.file("m.npz")).ok());
  EXPECT_TRUE(read_model(folder.file("m.npz")).ok());
}

/// What `read_model` says about the example after `damage`, written without the writer's own check.
template <class Damage>
std::string refusal(const Damage& damage) {
  const TempDir folder;
  const std::string path = folder.file("m.npz");
  Model model = example_model();
  damage(model);
  EXPECT_TRUE(write_npz(path, model.arrays, {{"manifest.json", model.manifest.dump()}}).ok());
  const auto back = read_model(path);
  if (back.ok()) return "accepted";
  EXPECT_EQ(back.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(back.error().message, HasSubstr(path));

  const auto written = write_model(model, folder.file("again.npz"));
  EXPECT_FALSE(written.ok()) << "a model that cannot be read back was written";
  EXPECT_FALSE(std::filesystem::exists(folder.file("again.npz")));
  return back.error().message;
}

TEST(Model, IsRefusedWhenAnArrayIsMissing) {
  for (const char* name : {"components", "eigenvalues", "mean", "offset", "scale"}) {
    const auto drop = [&](Model& model) {
      std::erase_if(model.arrays, [&](const NamedArray& array) { return array.name == name; });
    };
    EXPECT_THAT(refusal(drop), HasSubstr(std::string("the array '") + name + "' is missing"));
  }
}

TEST(Model, IsRefusedWhenAnArrayHasTheWrongShape) {
  const std::vector<std::pair<std::string, std::string>> expected = {{"eigenvalues", "a vector of 2"},
                                                                     {"mean", "a vector of 4"},
                                                                     {"offset", "a vector of 4"},
                                                                     {"scale", "a vector of 4"}};
  for (const auto& array : expected) {
    const std::string message = refusal([&](Model& model) { array_of(model, array.first) = Matrix::Ones(3, 1); });
    EXPECT_THAT(message, HasSubstr("'" + array.first + "' has 3 numbers"));
    EXPECT_THAT(message, HasSubstr(array.second));
  }
  EXPECT_THAT(refusal([](Model& model) { model.arrays[2].is_vector = false; }), HasSubstr("'mean' has 4 x 1 numbers"));
  EXPECT_THAT(refusal([](Model& model) { model.arrays[0].values.resize(0, 4); }), HasSubstr("0 x 4 numbers"));
  EXPECT_THAT(refusal([](Model& model) { model.arrays[0].is_vector = true; }), HasSubstr("'components' has 8 numbers"));
}

TEST(Model, IsRefusedWhenAnArrayIsNotFinite) {
  for (const double value : {std::nan(""), kInfinity}) {
    EXPECT_THAT(refusal([&](Model& model) { array_of(model, "mean")(1) = value; }),
                HasSubstr("'mean' holds a value that is not a finite number"));
  }
}

TEST(Model, IsRefusedWhenItsManifestDoesNotDescribeIt) {
  EXPECT_THAT(refusal([](Model& model) { model.manifest.erase("model"); }), HasSubstr("which 'model'"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest["model"] = 3; }),
              HasSubstr("'model' in its manifest is not text"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest = {1, 2}; }), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest.erase("features"); }), HasSubstr("4 names of 'features'"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest["features"].erase(0); }), HasSubstr("4 names of 'features'"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest["features"][2] = 7; }), HasSubstr("not a list of texts"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest["columns"].erase(0); }), HasSubstr("makes 3 features"));
  EXPECT_THAT(refusal([](Model& model) { model.manifest["columns"] = "all"; }), HasSubstr("not a list"));
}

TEST(Model, IsRefusedWithoutAManifestOrWithOneThatIsNoJson) {
  const TempDir folder;
  const std::string path = folder.file("m.npz");
  ASSERT_TRUE(write_npz(path, example_model().arrays, {}).ok());
  auto back = read_model(path);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(back.error().message, HasSubstr("no manifest.json"));
  ASSERT_TRUE(write_npz(path, example_model().arrays, {{"manifest.json", "{\"model\": "}}).ok());
  back = read_model(path);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(back.error().message, HasSubstr("not a JSON object"));
}

TEST(Columns, ComeBackFromTheManifestAsTheyWere) {
  const std::vector<ColumnSpec> specs = {{"age", NumericColumn{0, 120}},
                                         {"anything", NumericColumn{-kInfinity, kInfinity}},
                                         {"half \"open\"", NumericColumn{0.1, kInfinity}},
                                         {"sex", CategoricalColumn{{"F", "M", "?"}, 2}},
                                         {"town", CategoricalColumn{{"Ulm"}, std::nullopt}}};
  const auto text = columns_to_json(specs).dump();
  const auto back = columns_from_json(nlohmann::json::parse(text));
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ((*back)[i].name, specs[i].name);
    ASSERT_EQ((*back)[i].kind.index(), specs[i].kind.index());
    if (const auto* numeric = std::get_if<NumericColumn>(&specs[i].kind)) {
      EXPECT_EQ(std::get<NumericColumn>((*back)[i].kind).lower, numeric->lower);
      EXPECT_EQ(std::get<NumericColumn>((*back)[i].kind).upper, numeric->upper);
    } else {
      const auto& categorical = std::get<CategoricalColumn>(specs[i].kind);
      EXPECT_EQ(std::get<CategoricalColumn>((*back)[i].kind).values, categorical.values);
      EXPECT_EQ(std::get<CategoricalColumn>((*back)[i].kind).other, categorical.other);
    }
  }
}

TEST(Columns, ThatMakeNoSenseAreRefusedByNumber) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {R"({"kind": "numeric"})", "no name"},
      {R"({"name": "a"})", "kind"},
      {R"({"name": "a", "kind": "colour"})", "kind"},
      {R"({"name": "a", "kind": "numeric", "lower": "x"})", "'lower' is not a number"},
      {R"({"name": "a", "kind": "numeric", "lower": 2, "upper": 1})", "above its upper bound"},
      {R"({"name": "a", "kind": "categorical"})", "no list of 'values'"},
      {R"({"name": "a", "kind": "categorical", "values": []})", "no list of 'values'"},
      {R"({"name": "a", "kind": "categorical", "values": [1]})", "not text"},
      {R"({"name": "a", "kind": "categorical", "values": ["x"], "other": "y"})", "'other' is not one of its values"},
      {"7", "no name"}};
  for (const auto& [text, words] : expected) {
    const auto list = nlohmann::json::parse(R"([{"name": "fine", "kind": "numeric"},)" + text + "]");
    const auto specs = columns_from_json(list);
    ASSERT_FALSE(specs.ok()) << text;
    EXPECT_EQ(specs.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(specs.error().message, HasSubstr("Column 2 of"));
    EXPECT_THAT(specs.error().message, HasSubstr(words));
  }
}

}  // namespace
}  // namespace eigenveil
