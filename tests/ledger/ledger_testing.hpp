// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "eigenveil/ledger/ledger.hpp"

namespace eigenveil::test {

/// A folder of its own for each test, removed at its end.
class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    // In memory where there is such a place: what is tested here are processes and stops, not the disk.
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "eigenveil-ledger-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LedgerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return (folder_ / "ledger.db").string(); }

  Ledger open() const {
    auto ledger = Ledger::open(path());
    if (!ledger.ok()) throw std::runtime_error(ledger.error().message);
    return std::move(*ledger);
  }

  void remove_ledger() const {
    for (const char* part : {"", "-journal", ".key", ".anchor", ".lock"}) std::filesystem::remove(path() + part);
  }

  std::filesystem::path folder_;
};

inline DatasetBudget budget(const std::string& name, double epsilon, double delta,
                            Adjacency adjacency = Adjacency::kReplaceOne) {
  return {name, DatasetBudget::Limit{*Epsilon::of(epsilon), *Delta::of(delta)}, adjacency};
}

inline PrivacyPlan plan_of(PrivacyEvent event) { return PrivacyPlan(Adjacency::kReplaceOne, {std::move(event)}); }
inline PrivacyPlan gaussian(double mu, long long count = 1) { return plan_of({"g", GaussianEvent{mu}, count}); }
inline PrivacyPlan pure(double epsilon, long long count = 1) { return plan_of({"p", PureEvent{epsilon}, count}); }
inline PrivacyPlan poisson(double q, double sigma, long long count) {
  return PrivacyPlan(Adjacency::kAddRemoveOne, {{"s", PoissonGaussianEvent{q, sigma}, count}});
}
inline PrivacyPlan between(Adjacency adjacency, PrivacyPlan plan) {
  plan.adjacency = adjacency;
  return plan;
}
inline PrivacyPlan join(PrivacyPlan left, const PrivacyPlan& right) {
  left.events.insert(left.events.end(), right.events.begin(), right.events.end());
  return left;
}

inline bool accepts(Ledger& ledger, const std::string& name, const PrivacyPlan& plan,
                    Adjacency adjacency = Adjacency::kReplaceOne) {
  const auto reservation = ledger.reserve(name, between(adjacency, plan), "test");
  if (reservation.ok()) return true;
  EXPECT_EQ(reservation.error().code, ErrorCode::kBudgetRefused) << reservation.error().message;
  return false;
}

/// Ends a child process with what `body` returns; nothing of the test program may run on in it.
[[noreturn]] inline void leave_with(const std::function<int()>& body) {
  try {
    ::_exit(body());
  } catch (const std::exception& failure) {
    (void)!::write(2, failure.what(), std::strlen(failure.what()));
    ::_exit(99);
  }
}

/// Runs `body` in a child process; its return value is the exit code, -signal if a signal ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) leave_with(body);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// One value of a query against the bare file, past the ledger's code.
inline std::string query(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  std::string answer;
  char* error = nullptr;
  sqlite3_exec(
      db, sql.c_str(),
      [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) = values[0] == nullptr ? "" : values[0];
        return 0;
      },
      &answer, &error);
  if (error != nullptr) answer = std::string("error: ") + error;
  sqlite3_free(error);
  sqlite3_close(db);
  return answer;
}

}  // namespace eigenveil::test
