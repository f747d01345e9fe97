// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/base/version.hpp"

namespace eigenveil {
namespace {

using channel::Outcome;
using channel::Reply;
using channel::Request;

constexpr double kSecondsToStart = 300;  // libtorch alone, on a busy machine
constexpr int kAbove = 10;               // descriptors that the module's own numbers cannot overwrite

Result<std::string> module_program() {
  std::error_code failure;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  for (const auto& folder : {here, here / "../lib/eigenveil"})
    if (std::filesystem::exists(folder / "eigenveil-module", failure)) return (folder / "eigenveil-module").string();
  return usage_error(
      "TorchScript modules need libtorch, and this build has none: run scripts/install-packages torch and build again");
}

int moved_up(int descriptor) {
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, kAbove);
  close(descriptor);
  return moved;
}

}  // namespace

Status ModuleProcess::spawn() {
  const auto program = EIGENVEIL_TRY(module_program());
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return internal_error("there is no socket for the module's process");
  socket_ = moved_up(ends[0]);
  const int theirs = moved_up(ends[1]);
  memory_ = moved_up(memfd_create("eigenveil-module", MFD_CLOEXEC));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, theirs, channel::kSocket);
  posix_spawn_file_actions_adddup2(&actions, memory_, channel::kMemory);
  std::string name = "eigenveil-module", version = eigenveil::version(), memory = fmt::to_string(limits_.memory);
  std::array<char*, 4> words{name.data(), version.data(), memory.data(), nullptr};
  // OpenMP's threads spin while they wait, for a loop that follows at once and no longer: the program draws noise on
  // their cores as soon as a gradient is there (130,000 parameters: 3.7 ms a step, 5.8 with 20 times the spinning), and
  // on a busy machine whoever spins keeps others from what is waited for. To end them after each batch costs more:
  // where new ones begin is left to the scheduler, which may take the core that waits for them, and finds out
  // milliseconds later.
  std::string waiting = "GOMP_SPINCOUNT=1000";
  std::array<char*, 2> environment{waiting.data(), nullptr};
  // A group of its own: Ctrl-C is for the program, which ends this process with itself. A module that went first would
  // look like one that failed on private rows, and end a run that could go on later.
  posix_spawnattr_t apart;
  posix_spawnattr_init(&apart);
  posix_spawnattr_setflags(&apart, POSIX_SPAWN_SETPGROUP);
  const int failed = posix_spawn(&process_, program.c_str(), &actions, &apart, words.data(), environment.data());
  posix_spawnattr_destroy(&apart);
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  if (failed != 0 || socket_ < 0 || memory_ < 0) {
    process_ = failed != 0 ? -1 : process_;
    return internal_error("the module's process cannot be started");
  }
  return {};
}

Result<std::unique_ptr<ModuleProcess>> ModuleProcess::start(const std::string& name, const ModuleLimits& limits) {
  std::unique_ptr<ModuleProcess> process(new ModuleProcess(printable(name), limits));
  EIGENVEIL_TRY(process->spawn());
  const auto ready = EIGENVEIL_TRY(process->next_reply(kSecondsToStart));
  if (ready.outcome == Outcome::kDone) return process;
  return internal_error(
      fmt::format("{}: is not run, because its process cannot {} on this machine", process->name_,
                  printable({ready.text, std::min<std::size_t>(ready.text_size, sizeof ready.text)})));
}

ModuleProcess::~ModuleProcess() {
  end();
  if (shared_ != nullptr) munmap(shared_, size_);
  if (memory_ >= 0) close(memory_);
}

void ModuleProcess::end() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (process_ < 0) return;
  kill(process_, SIGKILL);  // its forks go with it
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

Status ModuleProcess::make_room(std::size_t bytes) {
  if (bytes <= size_) return {};
  if (shared_ != nullptr) munmap(shared_, size_);
  shared_ = nullptr;
  size_ = 0;
  if (ftruncate(memory_, static_cast<off_t>(bytes)) != 0) return internal_error("there is no memory for the module");
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (mapped == MAP_FAILED) return internal_error("there is no memory for the module");
  shared_ = static_cast<char*>(mapped);
  size_ = bytes;
  return {};
}

Result<Reply> ModuleProcess::next_reply(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1000000))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0) break;
    if (left > 0) continue;
    end();
    return bad_input(fmt::format("{}: took longer than {:g} seconds for one answer, and was killed", name_, seconds));
  }
  Reply reply{};
  if (read(socket_, &reply, sizeof reply) == sizeof reply) return reply;
  end();
  return bad_input(fmt::format("{}: its process has died", name_));
}

Error ModuleProcess::error_of(const Reply& reply, const Question& question) const {
  const std::string said(reply.text, std::min<std::size_t>(reply.text_size, sizeof reply.text));
  switch (reply.outcome) {
    case Outcome::kRefused:
      return bad_input(fmt::format("{}: {}", name_, printable(said, 2 * sizeof reply.text)));
    case Outcome::kNotFinite:
      return bad_input(fmt::format("{}: {} not finite", name_, question.not_finite));
    case Outcome::kTooLarge:
      return bad_input(fmt::format("{}: gives more than {} numbers", name_, question.capacity / sizeof(double)));
    case Outcome::kDied:
      return bad_input(
          fmt::format("{}: died; it crashed, or took more than {} MB of memory", name_, limits_.memory >> 20));
    default:
      break;
  }
  if (question.rows == RowsAre::kMadeUp)
    return bad_input(fmt::format("{}: {}", name_, printable(said, 2 * sizeof reply.text)));
  return bad_input(
      fmt::format("{}: failed on private rows; what it says is not shown, since it may hold some of them", name_));
}

Result<std::vector<char>> ModuleProcess::ask(const Question& question) {
  if (socket_ < 0) return bad_input(fmt::format("{}: its process has died", name_));
  const std::size_t body = question.body.size();
  EIGENVEIL_TRY(make_room(body + question.capacity));
  question.body.copy_to(shared_);
  const Request request{question.ask,
                        static_cast<std::uint32_t>(std::max(1, limits_.threads)),
                        question.rows == RowsAre::kMadeUp ? 1U : 0U,
                        0,
                        question.number,
                        body,
                        body + question.capacity};
  if (send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    end();
    return bad_input(fmt::format("{}: its process has died", name_));
  }
  const auto reply = next_reply(limits_.seconds);
  std::vector<char> answer;
  const bool done = reply && reply->outcome == Outcome::kDone && reply->bytes <= question.capacity;
  if (done) answer.assign(shared_ + body, shared_ + body + reply->bytes);
  // Nothing of these rows is there when the next come.
  std::memset(shared_, 0, body + (done ? reply->bytes : question.capacity));
  if (!reply) return reply.error();
  if (!done) return error_of(*reply, question);
  return answer;
}

}  // namespace eigenveil
