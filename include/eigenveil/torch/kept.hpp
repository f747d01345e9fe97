// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "eigenveil/torch/module.hpp"

namespace eigenveil {

/// The same encoder, which keeps what it gave in a file of `folder` and looks there first: features are a function of
/// their row, so nobody can tell but by the time it takes. A row is found by its SHA-256, whatever file it comes from.
/// What is kept is as private as the rows: the file is its owner's alone, and one that others may write to is refused.
/// `encoder_sha256`: of the module, which with `method` and the shape of `like` names the file.
Result<std::unique_ptr<TorchEncoder>> keeping(std::unique_ptr<TorchEncoder> encoder, const std::string& folder,
                                              const std::string& encoder_sha256, const std::string& method,
                                              const Tensor& like);

}  // namespace eigenveil
