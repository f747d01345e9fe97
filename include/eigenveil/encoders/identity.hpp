// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// Which encoder made the features, as a model tells it: never a path, and nothing that could be run.
struct EncoderIdentity {
  std::string kind;         ///< "scatter", "pixels", "hash", "vectors", "torchscript"
  std::string file = {};    ///< its name without folders, if the encoder is in one
  std::string sha256 = {};  ///< of that file, in hex
};

/// "torchscript:FILE" -> {"torchscript", "FILE"}; without a colon the second is empty.
std::pair<std::string, std::string> split_encoder(const std::string& text);

/// Refuses an encoder whose file has another hash than the model tells; empty: any will do.
Status check_encoder(const EncoderIdentity& encoder, const std::string& sha256);

}  // namespace eigenveil
