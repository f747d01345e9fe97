// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/federation/site_study.hpp"

namespace eigenveil::federation {

/// Hears what a site does, in lines for its person.
using Say = std::function<void(const std::string& line)>;

struct ServeOptions {
  Approve approve;
  Say say;
  bool once = false;                   ///< end with the first study, well or badly
  double give_up_seconds = 1.0 / 0.0;  ///< without a coordinator
};

/// Dials the coordinator, takes part in its studies, and dials again when the connection is lost. Without `once` it
/// ends only by giving up.
Status serve(const SiteConfig& config, const ServeOptions& options, Observer& observer);

}  // namespace eigenveil::federation
