// SPDX-License-Identifier: Apache-2.0
// A model file may come from anybody: whatever its manifest holds, reading and using it ends in a result or in a
// sentence, never in an exception.
#include <fmt/format.h>

#include <cstdlib>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/job/clip.hpp"
#include "eigenveil/release/report.hpp"
#include "eigenveil/release/transform.hpp"
#include "src/release/manifest_types.hpp"
#include "tests/release/example_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Model classes_model() {
  Model model = example_model();
  model.arrays.erase(model.arrays.begin());
  model.arrays.push_back({"scalings", Matrix::Ones(4, 2)});
  model.arrays.push_back({"class_means", Matrix::Random(3, 4)});
  model.arrays.push_back({"priors", Matrix::Constant(3, 1, 1.0 / 3), true});
  model.manifest["model"] = "fda";
  model.manifest["classes"] = {"a", "b", "c"};
  model.manifest["noise_edge"] = 0.5;
  model.manifest["ridge"] = 0.1;
  model.manifest["planner"] = {{"chosen", "gram"}, {"forecasts", {{{"method", "gram"}, {"sin2", 0.5}}}}};
  return model;
}

Model vectors_model() {
  Model model;
  model.arrays = {{"image_weights", Matrix::Random(2, 3)},
                  {"image_offset", Matrix::Zero(2, 1), true},
                  {"text_weights", Matrix::Random(2, 3)},
                  {"text_offset", Matrix::Zero(2, 1), true}};
  model.manifest = {{"model", "clip"},
                    {"private", true},
                    {"classes", {"x", "y"}},
                    {"prompts", {"a {}"}},
                    {"options", {{"dim", 2}}},
                    {"encoders",
                     {{"image", "vectors"},
                      {"text", "vectors"},
                      {"height", 4},
                      {"width", 4},
                      {"channels", 1},
                      {"lower", 0},
                      {"upper", 255}}}};
  return model;
}

Model images_model() {
  Model model = vectors_model();
  model.manifest["encoders"]["image"] = "pixels";
  model.manifest["encoders"]["text"] = "hash";
  return model;
}

std::vector<json> hostile_values() {
  json deep = 1;
  for (int i = 0; i < 20; ++i) deep = json::array({deep});
  return {nullptr,
          true,
          false,
          0,
          -1,
          1,
          7,
          UINT64_MAX,
          INT64_MIN,
          1e308,
          -1e308,
          1e-320,
          0.5,
          "",
          "x",
          "torchscript",
          "\x1b[2J</script><img src=x onerror=alert(1)>",
          std::string(100000, 'A'),
          json::array(),
          json::array({1}),
          json::array({"a", 2}),
          json::array({nullptr, json::object()}),
          json::object(),
          {{"a", 1}},
          {{"name", 3}, {"kind", "numeric"}, {"mechanism", "gaussian:mu=inf"}, {"count", -1}},
          deep};
}

/// Every place in a document, containers included.
void add_places(const json& at, const std::string& path, std::vector<std::string>& places) {
  if (!path.empty()) places.push_back(path);
  if (at.is_object())
    for (const auto& [key, value] : at.items()) add_places(value, path + "/" + key, places);
  if (at.is_array())
    for (std::size_t i = 0; i < at.size(); ++i) add_places(at[i], path + "/" + std::to_string(i), places);
}

class HostileManifest : public testing::Test {
 protected:
  HostileManifest() {
    folder_.write_file("people.csv", "height,weight,sex\n170,70,F\n160,60,M\n");
    folder_.write_file("vectors.csv", "1,0,0\n0,1,0\n");
    folder_.write_file("labels.csv", "0\n1\n");
    folder_.write_file("pixels.csv", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0\n");
    folder_.write_file("texts.txt", "a cat\na dog\n");
  }

  template <class T>
  void tell(const Result<T>& result) {
    ++cases_;
    if (result.ok()) return;
    const ErrorCode code = result.error().code;
    EXPECT_TRUE(code == ErrorCode::kBadInput || code == ErrorCode::kUsage) << result.error().message;
    EXPECT_FALSE(result.error().message.empty());
    ++refused_;
  }

  void use(const Model& model) {
    const std::string kind = model.manifest["model"];
    const bool pairs = kind == "clip";
    if (!pairs) tell(transform(model, folder_.file("people.csv"), {}, folder_.file("scores.npy")));
    if (!pairs) tell(predict(model, folder_.file("people.csv"), {}, folder_.file("classes.csv")));
    if (pairs) use_pairs(model);
    const std::string page = html_report(model);
    EXPECT_EQ(page.find("<img src=x"), std::string::npos);
    EXPECT_EQ(page.find("</script>"), std::string::npos);
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
    privacy_in_words(model);
    header_named_by_model(model);
  }

  void use_pairs(const Model& model) {
    Observer silent;
    tell(embed_clip(model, {}, {.x = folder_.file("vectors.csv")}, folder_.file("e.npy"), {.threads = 1}, silent));
    tell(embed_clip(model, {}, {.captions = folder_.file("texts.txt")}, folder_.file("e.npy"), {.threads = 1}, silent));
    tell(evaluate_clip(model, {}, {.images = folder_.file("pixels.csv"), .labels = folder_.file("labels.csv")}, false,
                       {.threads = 1}, silent));
  }

  void attack(const Model& whole) {
    std::vector<std::string> places;
    add_places(whole.manifest, "", places);
    // Every third value at a place, another third at the next; all of them at night.
    const bool all = std::getenv("EIGENVEIL_NIGHTLY") != nullptr;
    const std::vector<json> values = hostile_values();
    for (std::size_t i = 0; i < places.size(); ++i)
      for (std::size_t j = 0; j < values.size(); ++j) {
        if (!all && (i + j) % 3 != 0) continue;
        const std::string& place = places[i];
        const json& value = values[j];
        SCOPED_TRACE(fmt::format("{} = {}", place, value.dump().substr(0, 80)));
        json manifest = whole.manifest;
        manifest[json::json_pointer(place)] = value;
        const std::string path = folder_.file("m.npz");
        ASSERT_TRUE(write_npz(path, whole.arrays, {{"manifest.json", manifest.dump()}}).ok());
        const auto model = read_model(path);
        tell(model);
        if (model.ok()) {
          ASSERT_NO_THROW(use(*model));
        }
      }
  }

  TempDir folder_;
  std::size_t cases_ = 0;
  std::size_t refused_ = 0;
};

TEST_F(HostileManifest, EveryFieldOfEveryWrongTypeEndsInAResultOrASentence) {
  for (const Model& model : {example_model(), classes_model(), vectors_model(), images_model()}) {
    use(model);
    attack(model);
  }
  EXPECT_GT(cases_, 2000U);
  EXPECT_GT(refused_, 1000U);
}

TEST_F(HostileManifest, IsRefusedWhenItIsNoJsonOrTooDeep) {
  const std::string path = folder_.file("m.npz");
  for (const std::string& text : {std::string("{\"model\": \"pca\", \"x\": \"\xff\"}"), std::string(1000000, '['),
                                  "{\"model\":" + std::string(100, '[') + std::string(100, ']') + "}",
                                  std::string("[1]"), std::string("{\"epsilon\": 1e999}"), std::string()}) {
    ASSERT_TRUE(write_npz(path, example_model().arrays, {{"manifest.json", text}}).ok());
    const auto model = read_model(path);
    ASSERT_FALSE(model.ok()) << text.substr(0, 40);
    EXPECT_EQ(model.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(model.error().message, HasSubstr("not a JSON object"));
  }
}

json promise(double epsilon) {
  return {{"sha256", std::string(64, 'a')},
          {"epsilon", epsilon},
          {"delta", 1e-6},
          {"adjacency", "replace-one"},
          {"unit", "row"}};
}

TEST_F(HostileManifest, WhatAReleaseBeganWithIsAListHoweverItWasWritten) {
  json nested;
  json list = json::array();
  for (int i = 0; i < 30; ++i) {
    json one = promise(i);
    if (!nested.is_null()) one["start"] = nested;
    nested = one;
    list.insert(list.begin(), promise(i));
  }
  const auto read = [](const json& start) { return manifest_from_text(json{{"start", start}}.dump(), "m.npz"); };
  for (const json& start : {nested, list}) {
    const auto manifest = read(start);
    ASSERT_TRUE(manifest.ok()) << manifest.error().message;
    EXPECT_EQ((*manifest)["start"], list);
  }
  EXPECT_TRUE(read(json::array()).ok());
  std::vector<json> wrong = {1, "x", json::object(), json::array({1}), json::array({json::object()})};
  for (const char* key : {"sha256", "epsilon", "delta", "adjacency", "unit"}) {
    wrong.push_back(json::array({promise(1)}));
    wrong.back()[0].erase(key);
    wrong.push_back(json::array({promise(1)}));
    wrong.back()[0][key] = nullptr;
  }
  wrong.push_back(json::array({promise(1)}));
  wrong.back()[0]["unit"] = std::string(65, 'x');
  wrong.push_back(promise(1));
  wrong.back()["start"] = "x";
  wrong.push_back(json::array({promise(1)}));
  wrong.back()[0]["start"] = promise(2);
  for (const json& start : wrong)
    EXPECT_THAT(read(start).error().message, HasSubstr("'start' in its manifest is not")) << start;
  EXPECT_TRUE(read(json(1000, promise(1))).ok());
  EXPECT_FALSE(read(json(1001, promise(1))).ok());
}

TEST_F(HostileManifest, AModelIsPrivateOnlyIfItSaysSo) {
  Model model = example_model();
  EXPECT_EQ(privacy_in_words(model), "The model is.");
  for (const json& value : {json(false), json("true"), json(1), json(nullptr)}) {
    model.manifest["private"] = value;
    EXPECT_THAT(privacy_in_words(model), HasSubstr("NOT PRIVATE"));
  }
  model.manifest.erase("private");
  EXPECT_THAT(privacy_in_words(model), HasSubstr("NOT PRIVATE"));
}

}  // namespace
}  // namespace eigenveil::test
