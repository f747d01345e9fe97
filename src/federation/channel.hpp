// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

namespace eigenveil::federation {

constexpr int kLargestAsk = 1 << 30;      // directions of a million columns fit
constexpr int kLargestReply = 4 << 20;    // a part is a megabyte
constexpr int kPingMilliseconds = 10000;  // a peer that is silent for so long is asked whether it is there

/// Both ends notice a connection that carries nothing any more; a part goes out in one frame, without waiting until
/// the other end has made room for it.
template <class Arguments>
void tune_with(const Arguments& set) {
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kLargestReply);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLargestReply);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingMilliseconds);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

inline void tune(grpc::ChannelArguments& arguments) {
  tune_with([&](const char* key, int value) { arguments.SetInt(key, value); });
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // what an attempt may take, whatever its name says
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
}

inline void tune(grpc::ServerBuilder& builder) {
  tune_with([&](const char* key, int value) { builder.AddChannelArgument(key, value); });
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingMilliseconds / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, kPingMilliseconds / 2);
}

}  // namespace eigenveil::federation
