// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace eigenveil::test {

/// A program that runs beside the test and ends with it. Its standard input stays open and silent.
class Child {
 public:
  explicit Child(std::vector<std::string> command) {
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(out[1], STDERR_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
    ::close(input_);
    std::fclose(output_);
  }

  /// The rest of the first line that starts so.
  std::string line_after(const std::string& start) {
    std::string all;
    char line[4096];
    while (std::fgets(line, sizeof line, output_) != nullptr) {
      std::string text(line);
      if (text.starts_with(start)) return text.substr(start.size(), text.find('\n') - start.size());
      all += text;
    }
    throw std::runtime_error("no line '" + start + "' but:\n" + all);
  }

  std::string all_output() {
    std::string all;
    for (int c = 0; (c = std::fgetc(output_)) != EOF;) all += static_cast<char>(c);
    return all;
  }

  int wait() {
    if (pid_ <= 0) return status_;
    ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
  int status_ = 0;
};

/// What the command prints on either stream; fails the test's caller by throwing if it does not exit with 0.
inline std::string output_of(std::vector<std::string> command) {
  Child child(std::move(command));
  std::string text = child.all_output();
  if (const int status = child.wait(); !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("the command failed: " + text);
  return text;
}

}  // namespace eigenveil::test
