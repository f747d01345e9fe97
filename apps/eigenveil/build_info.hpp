// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil::app {

/// What this program was made of (cmake/build_info.cmake).
struct BuildInfo {
  const char* commit;  ///< "unknown" outside git
  const char* compiler;
  bool mpi;
  bool federation;
  bool modules;  ///< TorchScript modules, run by eigenveil-module
};
extern const BuildInfo kBuildInfo;

}  // namespace eigenveil::app
