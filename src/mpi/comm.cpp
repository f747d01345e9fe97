// SPDX-License-Identifier: Apache-2.0
#include "comm.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace eigenveil::mpi {
namespace {

// Messages are cut into pieces: MPI counts in ints, and a reduction needs a buffer of a piece's size.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Waits without keeping a core busy; answers come at most a millisecond late.
void wait_asleep(MPI_Request& request) {
  constexpr int kPatience = 1000;
  int done = 0;
  for (int tries = 0;; ++tries) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (tries < kPatience)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// MPI's buffers need not be aligned for 128-bit integers.
void add_128(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(in_out);
  for (int i = 0; i < *count; ++i, from += sizeof(UInt128), to += sizeof(UInt128)) {
    UInt128 a = 0;
    UInt128 b = 0;
    std::memcpy(&a, from, sizeof(a));
    std::memcpy(&b, to, sizeof(b));
    b += a;
    std::memcpy(to, &b, sizeof(b));
  }
}

template <class T>
void reduce(T* values, std::size_t count, MPI_Datatype type, MPI_Op add) {
  constexpr std::size_t kPiece = kPieceBytes / sizeof(T);
  for (std::size_t done = 0; done < count; done += kPiece) {
    const auto piece = static_cast<int>(std::min(kPiece, count - done));
    const void* from = rank() == 0 ? MPI_IN_PLACE : values + done;
    MPI_Reduce(from, values + done, piece, type, add, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int ranks() {
  int value = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

std::string broadcast(std::string bytes) {
  std::uint64_t size = bytes.size();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  wait_asleep(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);  // at once: the analyzer knows no other end of a request
  bytes.resize(size);
  for (std::size_t done = 0; done < size; done += kPieceBytes)
    MPI_Bcast(bytes.data() + done, static_cast<int>(std::min(kPieceBytes, size - done)), MPI_BYTE, 0, MPI_COMM_WORLD);
  return bytes;
}

std::vector<std::string> gather(const std::string& mine) {
  // What is gathered are short reports.
  const auto size = static_cast<int>(std::min(mine.size(), kPieceBytes));
  std::vector<int> sizes(ranks());
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank() != 0) {
    MPI_Send(mine.data(), size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    return {};
  }
  std::vector<std::string> all = {mine};
  for (int r = 1; r < ranks(); ++r) {
    std::string& one = all.emplace_back(sizes[r], '\0');
    MPI_Recv(one.data(), static_cast<int>(one.size()), MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return all;
}

bool decided(bool at_rank_0) {
  int value = at_rank_0 ? 1 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return value != 0;
}

bool everywhere(bool here) {
  int mine = here ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

// Rank by rank and in pieces: MPI counts in ints. Of a message there are as many pieces as it has, however many another
// one has that goes the same step: a piece that nobody sends must not be waited for.
std::vector<std::string> exchange(const std::vector<std::string>& to) {
  const int n = ranks();
  std::vector<std::string> from(to.size());
  for (int step = 0; step < n; ++step) {
    const int next = (rank() + step) % n, before = (rank() - step + n) % n;
    const std::string& out = to[next];
    std::string& in = from[before];
    std::uint64_t out_size = out.size(), in_size = 0;
    MPI_Sendrecv(&out_size, 1, MPI_UINT64_T, next, 1, &in_size, 1, MPI_UINT64_T, before, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    in.resize(in_size);
    const std::uint64_t most = std::max(out_size, in_size);
    for (std::uint64_t done = 0; done < most; done += kPieceBytes) {
      const auto part = [&](std::uint64_t size) {
        return static_cast<int>(done < size ? std::min<std::uint64_t>(kPieceBytes, size - done) : 0);
      };
      MPI_Sendrecv(out.data() + std::min(done, out_size), part(out_size), MPI_BYTE,
                   done < out_size ? next : MPI_PROC_NULL, 2, in.data() + std::min(done, in_size), part(in_size),
                   MPI_BYTE, done < in_size ? before : MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  return from;
}

void add_to_rank_0(Int128* values, std::size_t count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op add = MPI_OP_NULL;
  MPI_Type_contiguous(sizeof(Int128), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(add_128, 1, &add);
  reduce(values, count, type, add);
  MPI_Op_free(&add);
  MPI_Type_free(&type);
}

void add_to_rank_0(std::int64_t* values, std::size_t count) { reduce(values, count, MPI_INT64_T, MPI_SUM); }

}  // namespace eigenveil::mpi
