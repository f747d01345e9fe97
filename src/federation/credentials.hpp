// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include "eigenveil/federation/certificates.hpp"

namespace eigenveil::federation {

// TLS 1.2 or newer, both sides with certificates. Who the other side is gets checked once per handshake, before a byte
// of the protocol is read: chain and validity by TLS itself, then role, name and pinned key by `verify_party`.

/// A site's: it talks only to the coordinator of this name and key, whatever the host name it dialled.
std::shared_ptr<grpc::ChannelCredentials> credentials_of_site(const Identity& own, const std::string& coordinator,
                                                              const std::string& coordinator_key);

/// A coordinator's: it listens only to these sites, each with its key.
std::shared_ptr<grpc::ServerCredentials> credentials_of_coordinator(const Identity& own, const Pins& sites);

/// The certificate that the other side of a call showed.
Result<Party> peer_of(const grpc::AuthContext& context);

}  // namespace eigenveil::federation
