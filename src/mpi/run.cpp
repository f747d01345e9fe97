// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX

#include <algorithm>
#include <cstring>
#include <thread>

#include "comm.hpp"
#include "eigenveil/wire/convert.hpp"
#include "joint.hpp"
#include "state.hpp"

namespace eigenveil::mpi {
namespace {

// One command at a time, on the rows that the last reading gave. What comes of it, rank 0 knows and tells.
void obey(const wire::v2::RankCommand& command, std::optional<BoundedRows>& rows) {
  using Kind = wire::v2::RankCommand::KindCase;
  const auto ask = [&](const auto& query, const auto& work) {
    if (!query)
      (void)joint_failure(query.error());
    else if (!rows)
      (void)joint_failure(internal_error("there are no rows to work on"));
    else
      (void)work(*query);
  };
  switch (command.kind_case()) {
    case Kind::kRead: {
      rows.reset();
      Observer nobody;
      auto share = joint_read(command.read(), nobody);
      if (share) rows.emplace(std::move(share->rows));
      return;
    }
    case Kind::kSum:
      return ask(from_wire(command.sum()), [&](const SumQuery& query) {
        return joint_sum(query, *rows, Adjacency::kReplaceOne);
      });  // rank 0 knows the neighbours
    case Kind::kCounts:
      return ask(from_wire(command.counts()), [&](const NormExceedance& query) { return joint_counts(query, *rows); });
    case Kind::kCells:
      return ask(from_wire(command.cells()), [&](const FilteredApply& query) { return joint_cells(query, *rows); });
    case Kind::kRecenter:
      return ask(from_wire(command.recenter()), [&](const Recentring& to) { return joint_recenter(to, *rows); });
    case Kind::kStop:
    case Kind::KIND_NOT_SET:
      (void)joint_failure(internal_error("a command that is not known"));
  }
}

void serve() {
  std::optional<BoundedRows> rows;
  while (true) {
    wire::v2::RankCommand command;
    const bool understood = command.ParseFromString(broadcast({}));
    if (understood && command.has_stop()) return;
    obey(command, rows);
  }
}

// mpirun ties ranks to cores, one each if there are but two. Rank 0's linear algebra wants all of them, as it has
// without MPI (and as many threads, or its last digits differ): the other ranks sleep meanwhile.
void use_all_cores() {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof(all));
  ::sched_setaffinity(0, sizeof(all), &all);
  if (rank() != 0)
    omp_set_num_threads(1);
  else if (::getenv("OMP_NUM_THREADS") == nullptr)  // NOLINT(concurrency-mt-unsafe): there are no threads yet
    omp_set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

void start() {
  // Open MPI warns about network cards that a machine does not have.
  ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &state().neighbours);
  MPI_Comm_free(&node);
  use_all_cores();
  state().running = true;
}

}  // namespace

State& state() {
  static State one;
  return one;
}

int threads_of_rank() {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / state().neighbours);
}

int run(const std::function<int()>& program) {
  start();
  int code = 0;
  if (rank() != 0) {
    serve();
  } else {
    code = program();
    if (state().asking) MPI_Abort(MPI_COMM_WORLD, code);
    wire::v2::RankCommand stop;
    stop.set_stop(true);
    broadcast(stop.SerializeAsString());
  }
  state().running = false;
  MPI_Finalize();
  return code;
}

}  // namespace eigenveil::mpi
