// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/release/model.hpp"

namespace eigenveil {

struct ReportOptions {
  struct ImageShape {
    std::size_t height;
    std::size_t width;
  };
  std::optional<ImageShape> image_shape;  ///< draw components (and the mean) as images of this shape
};

/// A self-contained HTML page about a released model: what was released, the guarantee in words, where the budget
/// went, the scree plot, the components as pictures or as a table of their largest entries. Reads nothing but the
/// model.
std::string html_report(const Model& model, const ReportOptions& options = {});

/// One page about several models, each under its name.
std::string html_dossier(const std::vector<Model>& models, const std::vector<std::string>& names,
                         const ReportOptions& options = {});

}  // namespace eigenveil
