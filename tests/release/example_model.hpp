// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/release/model.hpp"

namespace eigenveil::test {

/// A small model of principal components: 2 components of the features height, weight, sex=F, sex=M.
inline Model example_model() {
  Matrix components(2, 4);
  components << 0.8, 0.6, 0, 0,  //
      -0.36, 0.48, 0.48, -0.64;
  Matrix eigenvalues(2, 1);
  eigenvalues << 123.25, 41.0625;
  Matrix mean(4, 1);
  mean << 0.1, -0.2, 0.5, 0.25;
  Matrix offset(4, 1);
  offset << 150, 60, 0, 0;
  Matrix scale(4, 1);
  scale << 0.02, 0.025, 1, 1;
  Model model;
  model.arrays = {{"components", components, false},
                  {"eigenvalues", eigenvalues, true},
                  {"mean", mean, true},
                  {"offset", offset, true},
                  {"scale", scale, true}};
  model.manifest = {{"eigenveil", "0.1.0"},
                    {"model", "pca"},
                    {"method", "gram"},
                    {"options", {{"row_bound", 1.5}, {"center", "range"}}},
                    {"adjacency", "replace-one"},
                    {"epsilon", 1.0},
                    {"delta", 1e-6},
                    {"accounting", "tight"},
                    {"events",
                     {{{"label", "gram"}, {"mechanism", "gaussian:mu=0.1875"}, {"count", 1}},
                      {{"label", "mean"}, {"mechanism", "gaussian:mu=0.0625"}, {"count", 4}}}},
                    {"guarantee", "Whoever sees this model learns almost nothing about any single row."},
                    {"private", true},
                    {"warnings", nlohmann::json::array()},
                    {"ledger", {{"used", true}, {"dataset", "people"}}},
                    {"rows", 7321},
                    {"features", {"height", "weight", "sex=F", "sex=M"}},
                    {"columns", columns_to_json({{"height", NumericColumn{100, 200}},
                                                 {"weight", NumericColumn{20, 100}},
                                                 {"sex", CategoricalColumn{{"F", "M"}, std::nullopt}}})}};
  return model;
}

inline Matrix& array_of(Model& model, const std::string& name) {
  for (auto& array : model.arrays) {
    if (array.name == name) return array.values;
  }
  model.arrays.push_back({name, Matrix(), true});
  return model.arrays.back().values;
}

}  // namespace eigenveil::test
