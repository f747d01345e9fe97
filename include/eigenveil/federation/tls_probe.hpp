// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eigenveil/federation/certificates.hpp"

namespace eigenveil::federation {

/// Makes one TLS connection to ADDRESS (host:port) as a site would, and says in one plain sentence why a site cannot
/// talk to the coordinator there, or that no fault was found. Each step waits at most 2 s (the search for a host name
/// as long as the system's resolver does). The coordinator must have that name and that key.
std::string why_no_connection(const std::string& address, const std::string& coordinator,
                              const std::string& coordinator_key, const Identity& own);

}  // namespace eigenveil::federation
