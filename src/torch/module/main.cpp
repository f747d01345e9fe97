// SPDX-License-Identifier: Apache-2.0
// eigenveil-module: runs a TorchScript module for the program, behind a wall. It is started afresh for every use, takes
// requests through one socket and numbers through one piece of memory, and computes answers on private rows in forks.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <malloc.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>

#include "lockdown.hpp"
#include "modules.hpp"

namespace eigenveil {
namespace {

using channel::Ask;
using channel::Outcome;
using channel::Reply;
using channel::Request;

Reply reply_of(Outcome outcome, std::string_view text = {}) {
  Reply reply{outcome, 0, 0, {}};
  if (text.size() > sizeof reply.text) text = text.substr(text.size() - sizeof reply.text);  // the reason comes last
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  reply.text_size = static_cast<std::uint32_t>(text.size());
  std::copy(text.begin(), text.end(), reply.text);
  return reply;
}

// What `body` answers, or what it threw.
Reply guarded(Answer& answer, const std::function<void()>& body) {
  try {
    body();
  } catch (const Refusal& refusal) {
    return reply_of(Outcome::kRefused, refusal.what());
  } catch (const NotFinite&) {
    return reply_of(Outcome::kNotFinite);
  } catch (const TooLarge&) {
    return reply_of(Outcome::kTooLarge);
  } catch (const c10::Error& error) {
    return reply_of(Outcome::kFailed, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return reply_of(Outcome::kFailed, error.what());
  }
  Reply reply = reply_of(Outcome::kDone);
  reply.bytes = answer.bytes;
  return reply;
}

// The memory that is shared with the program, as much of it as a request speaks of.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t size) { reach(size); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { release(); }
  // What is mapped stays so: to find its pages anew costs more than to copy them.
  void reach(std::size_t size) {
    if (size <= size_) return;
    release();
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, channel::kMemory, 0);
    if (mapped == MAP_FAILED) _exit(1);
    data_ = static_cast<char*>(mapped);
    size_ = size;
  }
  channel::Pieces body() const { return channel::Pieces(data_); }
  Answer answer(const Request& request) const { return {data_ + request.answer, request.size - request.answer}; }

 private:
  void release() {
    if (data_ != nullptr) munmap(data_, size_);
  }

  std::size_t size_ = 0;
  char* data_ = nullptr;
};

Reply open_module(const Request& request, std::unique_ptr<Opened>& opened) {
  const Memory memory(request.size);
  Answer answer = memory.answer(request);
  return guarded(answer, [&] {
    opened =
        request.ask == Ask::kOpenEncoder ? open_encoder(memory.body(), answer) : open_trainee(memory.body(), answer);
  });
}

// A fork that answers requests, one at a time.
class Worker {
 public:
  Worker(Opened& opened, Part part) {
    int requests[2], replies[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(replies, O_CLOEXEC) != 0) _exit(1);
    process_ = fork();
    if (process_ < 0) _exit(1);
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(requests[1]);
      close(replies[0]);
      answer_all(requests[0], replies[1], opened, part);
    }
    close(requests[0]);
    close(replies[1]);
    to_ = requests[1];
    from_ = replies[0];
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    dismiss();
    close(to_);
    close(from_);
    waitpid(process_, nullptr, 0);
  }

  // Ends by itself, which takes some milliseconds; to be destroyed then costs no wait.
  void dismiss() const {
    Request end{};
    end.ask = Ask::kEnd;  // later forks hold this pipe too, so that closing it says nothing
    send(end);
  }

  void send(const Request& request) const {
    if (write(to_, &request, sizeof request) != sizeof request) return;  // it is dead, which its reply will show
  }

  // Should the program go away first, this process ends, and its forks with it.
  Reply reply() {
    ++answered_;
    pollfd both[2] = {{from_, POLLIN, 0}, {channel::kSocket, POLLIN, 0}};
    while (poll(both, 2, -1) <= 0) {
    }
    if (both[0].revents == 0) _exit(1);
    Reply reply{};
    if (read(from_, &reply, sizeof reply) != sizeof reply) reply = reply_of(Outcome::kDied);
    return reply;
  }

  int answered() const { return answered_; }

 private:
  [[noreturn]] static void answer_all(int requests, int replies, Opened& opened, Part part) {
    Memory memory;
    for (Request request{}; read(requests, &request, sizeof request) == sizeof request && request.ask != Ask::kEnd;) {
      memory.reach(request.size);
      Answer answer = memory.answer(request);
      const Reply reply = guarded(answer, [&] { opened.work(request, memory.body(), part, answer); });
      if (write(replies, &reply, sizeof reply) != sizeof reply) break;
    }
    _exit(0);
  }

  pid_t process_;
  int to_ = -1;
  int from_ = -1;
  int answered_ = 0;
};

// In this process, so that forks find everything in place: symbols, kernels, memory. On made-up rows, and on one
// thread, since forks could not use others.
Reply rehearse(Request request, Opened& opened) {
  request.threads = 1;
  const Memory memory(request.size);
  Answer answer = memory.answer(request);
  return guarded(answer, [&] { opened.work(request, memory.body(), {0, 1}, answer); });
}

using Workers = std::vector<std::unique_ptr<Worker>>;

Workers fresh_workers(Opened& opened, std::uint32_t count) {
  Workers workers;
  for (std::uint32_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(opened, Part{i, count}));
  return workers;
}

// Rows that are shared among forks.
Reply shared(const Request& request, const Workers& workers) {
  for (const auto& worker : workers) worker->send(request);
  Reply all = reply_of(Outcome::kDone);
  for (const auto& worker : workers) {
    const Reply one = worker->reply();
    const std::uint64_t bytes = std::max(all.bytes, one.bytes);
    if (all.outcome == Outcome::kDone) all = one;
    all.bytes = bytes;
  }
  return all;
}

// Batches for forks that have seen few others. To start one costs as much as twenty small steps: the next is made while
// this one takes its last batch, and ends while that takes its first.
class Batches {
 public:
  explicit Batches(Opened& opened) : opened_(opened) {}

  Reply gradient(const Request& request) {
    if (now_ && now_->answered() >= kEach) {
      now_->dismiss();
      last_ = std::move(now_);
    }
    if (!now_) now_ = next_ ? std::move(next_) : fresh();
    now_->send(request);
    if (now_->answered() + 1 == kEach) next_ = fresh();
    const Reply reply = now_->reply();
    if (reply.outcome != Outcome::kDone) now_.reset();
    return reply;
  }

  // Of rows by themselves.
  Reply gradients(const Request& request) {
    if (pool_.size() != request.threads || pool_.front()->answered() >= kEach) pool_.clear();
    if (pool_.empty()) pool_ = fresh_workers(opened_, request.threads);
    const Reply reply = shared(request, pool_);
    if (reply.outcome != Outcome::kDone) pool_.clear();
    return reply;
  }

  // On public rows, for a fork of its own: it leaves the module in another mode.
  Reply loss(const Request& request) {
    const Workers one = fresh_workers(opened_, 1);
    return shared(request, one);
  }

 private:
  static constexpr int kEach = 512;
  // This process has seen no row, so that a fork of it has not either.
  std::unique_ptr<Worker> fresh() { return std::make_unique<Worker>(opened_, Part{0, 1}); }

  Opened& opened_;
  std::unique_ptr<Worker> last_, now_, next_;
  Workers pool_;
};

void serve() {
  std::unique_ptr<Opened> opened;
  std::unique_ptr<Batches> batches;
  for (Request request{}; read(channel::kSocket, &request, sizeof request) == sizeof request;) {
    const bool opens = request.ask == Ask::kOpenEncoder || request.ask == Ask::kOpenTrainee;
    if (!opens && !opened) return;
    if (opens) batches.reset();
    if (!opens && !batches) batches = std::make_unique<Batches>(*opened);
    const Reply reply = opens                            ? open_module(request, opened)
                        : request.ask == Ask::kLoss      ? batches->loss(request)
                        : request.made_up != 0           ? rehearse(request, *opened)
                        : request.ask == Ask::kEncode    ? shared(request, fresh_workers(*opened, request.threads))
                        : request.ask == Ask::kGradients ? batches->gradients(request)
                                                         : batches->gradient(request);
    if (write(channel::kSocket, &reply, sizeof reply) != sizeof reply) return;
  }
}

// Torch looks at the machine once, in files that are out of reach afterwards. Nothing here starts a thread: forks could
// not use it.
void warm_up() {
  // A fork keeps the memory of its last batch for the next: to get pages anew costs a tenth of a step.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(1);                       // at::set_num_threads would start a pool that nothing here uses
  torch::jit::setGraphExecutorOptimize(false);  // an optimiser learns from what it has seen
  at::manual_seed(1);
  const at::Tensor some = at::ones({2, 2});
  static_cast<void>(at::matmul(some, some));
}

}  // namespace
}  // namespace eigenveil

int main(int count, char** words) {
  if (count != 3 || std::string_view(words[1]) != EIGENVEIL_VERSION) return 2;
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with the thread that started it, whatever it is doing
  eigenveil::warm_up();
  if (const char* refused = eigenveil::lock_down(std::strtoull(words[2], nullptr, 10)); refused != nullptr) {
    const eigenveil::channel::Reply reply = eigenveil::reply_of(eigenveil::channel::Outcome::kRefused, refused);
    return write(eigenveil::channel::kSocket, &reply, sizeof reply) == sizeof reply ? 3 : 1;
  }
  const eigenveil::channel::Reply ready = eigenveil::reply_of(eigenveil::channel::Outcome::kDone);
  if (write(eigenveil::channel::kSocket, &ready, sizeof ready) != sizeof ready) return 1;
  eigenveil::serve();
  _exit(0);
}
