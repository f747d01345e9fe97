#pragma once

#include <string>

namespace eigenveil::federation {

/// Makes one TLS connection to ADDRESS (host:port) as a site would, and says in one plain sentence why a site cannot
/// talk to the coordinator there, or that no fault was found. Each step waits at most 2 s (the search for a host name
/// as long as the system's resolver does). EXPECTED_NAME is the name that the coordinator's certificate must carry.
std::string why_no_connection(const std::string& address, const std::string& expected_name, const std::string& ca_pem,
                              const std::string& certificate_pem, const std::string& key_pem);

}  // namespace eigenveil::federation
