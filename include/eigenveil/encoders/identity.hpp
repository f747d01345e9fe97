// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Which encoder made the features, as a model tells it: never a path, and nothing that could be run.
struct EncoderIdentity {
  std::string kind;       ///< "scatter", "hash", "torchscript", ..., a name of the catalogue, or several joined by "+"
  std::string file = {};  ///< its name without folders, if the encoder is in one
  std::string sha256 = {};                   ///< of that file, in hex
  std::optional<std::string> manifest = {};  ///< in the file of a module that `clip train` wrote: what it promises
};

/// "torchscript:FILE" -> {"torchscript", "FILE"}; without a colon the second is empty.
std::pair<std::string, std::string> split_encoder(const std::string& text);

/// "scatter+torchscript:FILE" -> {"scatter", "torchscript:FILE"}: encoders whose features stand side by side. A file
/// ends the list, whatever its name.
std::vector<std::string> joined_encoders(const std::string& text);

/// Whether a path goes with the name: "torchscript:FILE", "vectors:FILE".
bool names_a_file(const std::string& text);

/// Refuses an encoder whose file has another hash than the model tells; empty: any will do.
Status check_encoder(const EncoderIdentity& encoder, const std::string& sha256);

}  // namespace eigenveil
