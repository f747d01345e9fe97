#pragma once

#include <string>

#include "eigenveil/base/result.hpp"
#include "eigenveil/job/observer.hpp"

namespace eigenveil::app {

/// Shows steps and a progress bar on stderr, the bar only on a terminal; nothing at all when quiet.
class Terminal final : public Observer {
 public:
  explicit Terminal(bool quiet);
  ~Terminal() override;
  void step(std::string_view name) override;
  void progress(double share) override;

 private:
  void clear_line();
  bool quiet_;
  bool is_terminal_;
  bool line_open_ = false;
  int last_percent_ = -1;
  std::string step_;
};

/// Prints "eigenveil: ..." on stderr and returns the exit code of the error.
int fail(const Error& error);

/// 60000 -> "60,000"
std::string with_commas(std::size_t value);

}  // namespace eigenveil::app
