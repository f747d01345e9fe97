#pragma once

#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil::ledger {

/// One connection to a ledger file. Its mutex keeps one thread's statements out of another's transaction.
class Database {
 public:
  /// Opens or creates the file (0600) and its folder (0700), and proves that it is a ledger that can be written.
  static Result<std::shared_ptr<Database>> open(const std::string& path, std::chrono::milliseconds busy_timeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(handle_); }

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }
  Status run(const char* sql);
  /// The connection's last error in plain words.
  Error error() const;

 private:
  friend class Transaction;
  explicit Database(std::string path) : path_(std::move(path)) {}
  Status connect(std::chrono::milliseconds busy_timeout);
  Status prepare_schema();
  Status check_integrity();

  std::string path_;
  sqlite3* handle_ = nullptr;
  std::mutex mutex_;
};

/// BEGIN IMMEDIATE until `commit`; rolled back otherwise.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db), lock_(db.mutex_) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  Status begin();
  /// A transaction that changed a row raises the ledger's generation.
  Status commit();

 private:
  Database& db_;
  std::lock_guard<std::mutex> lock_;
  std::int64_t changes_ = 0;
};

/// A value that is no text.
struct Bytes {
  const std::string& value;
};

/// A prepared statement with its parameters. Errors surface in `step`.
class Statement {
 public:
  template <class... Values>
  Statement(const Database& db, const char* sql, const Values&... values) : db_(db) {
    status_ = sqlite3_prepare_v2(db.handle(), sql, -1, &statement_, nullptr);
    [[maybe_unused]] int index = 0;
    (bind(++index, values), ...);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Result<bool> step();  ///< whether there is a row
  Status finish();      ///< for statements without rows

  std::string text(int column) const;
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  void bind(int index, std::int64_t value);
  void bind(int index, const std::string& value);
  void bind(int index, const Bytes& value);
  void bind(int index, const std::optional<double>& value);

  const Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int status_;
};

}  // namespace eigenveil::ledger
