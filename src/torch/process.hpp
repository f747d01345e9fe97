// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>

#include "channel.hpp"
#include "eigenveil/torch/module.hpp"

namespace eigenveil {

/// A process of eigenveil-module and the memory it shares with this one. Believes nothing that comes back.
class ModuleProcess {
 public:
  /// `name` is what errors call the module.
  static Result<std::unique_ptr<ModuleProcess>> start(const std::string& name, const ModuleLimits& limits);
  ModuleProcess(const ModuleProcess&) = delete;
  ModuleProcess& operator=(const ModuleProcess&) = delete;
  ~ModuleProcess();

  struct Question {
    channel::Ask ask;
    const channel::Body& body;
    std::size_t capacity;  ///< bytes of an answer at most
    RowsAre rows;
    std::uint64_t number = 0;
    const char* not_finite = "";  ///< what is meant by it
  };
  /// The bytes of the answer, as they were. What a module says on private rows is not repeated.
  Result<std::vector<char>> ask(const Question& question);

 private:
  ModuleProcess(std::string name, ModuleLimits limits) : name_(std::move(name)), limits_(limits) {}
  Status spawn();
  Status make_room(std::size_t bytes);
  Result<channel::Reply> next_reply(double seconds);
  Error error_of(const channel::Reply& reply, const Question& question) const;
  void end();

  std::string name_;
  ModuleLimits limits_;
  pid_t process_ = -1;
  int socket_ = -1;
  int memory_ = -1;
  char* shared_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace eigenveil
