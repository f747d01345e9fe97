// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/data/source.hpp"

namespace eigenveil {

/// What the headers of a folder of PNG and JPEG files say.
struct ImageFolder {
  std::size_t height = 0;  ///< of every image
  std::size_t width = 0;
  std::size_t images = 0;
};

/// Nothing if the path is no folder with files named .png, .jpg or .jpeg. Reads the header of every file, and refuses
/// folders whose images differ in size. With BadRows::kMissing no header is read, and the size must have been stated.
Result<std::optional<ImageFolder>> image_folder(const std::string& path, const SourceOptions& options = {});

}  // namespace eigenveil
