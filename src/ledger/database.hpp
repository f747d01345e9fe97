// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "anchor.hpp"
#include "eigenveil/base/result.hpp"

namespace eigenveil::ledger {

/// Table and row.
using RowName = std::pair<std::string, std::int64_t>;

/// The sealed state of the whole file: its generation, the checksum of the head before it, and number and sum of the
/// checksums of all rows.
struct Head {
  Mark mark;
  Checksum previous{};
  std::int64_t rows = 0;
  Checksum sum{};
};

/// One connection to a ledger file. Its mutex keeps one thread's statements out of another's transaction.
class Database {
 public:
  /// Opens or creates the file (0600), its key beside it (0600) and its folder (0700), and proves that it is a ledger
  /// that is whole and can be written.
  static Result<std::shared_ptr<Database>> open(const std::string& path, std::chrono::milliseconds busy_timeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }
  const std::string& key() const { return key_; }
  Status run(const char* sql);
  /// The connection's last error in plain words.
  Error error() const;

 private:
  friend class Transaction;
  friend class Statement;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;
  /// One that nobody uses, or a new one; nothing if there is no such statement.
  Prepared prepare(const char* sql) const;
  /// For the next who needs the same.
  void keep(Prepared statement) const;

  explicit Database(std::string path) : path_(std::move(path)) {}
  Status connect(std::chrono::milliseconds busy_timeout);
  Status check_name();
  Status prepare_schema();
  Status bring_up_to_date(std::int64_t format);
  Status check_integrity();

  std::string path_;    ///< canonical: what lies beside the file (key, anchor, lock) is named by it
  std::string anchor_;  ///< path of the file that remembers the last generation
  std::string key_;
  sqlite3* handle_ = nullptr;
  std::mutex mutex_;
  std::set<RowName> touched_;                                       ///< rows that the transaction has written
  mutable std::multimap<std::string, Prepared, std::less<>> idle_;  ///< by their text: to compile one takes longer than
                                                                    ///< to run it
};

/// BEGIN IMMEDIATE until `commit`; rolled back otherwise. No row is read before the file is known to be whole and the
/// latest that this machine has seen, and none is written without its checksum, whoever writes it.
class Transaction {
 public:
  /// kHead: whoever begins verifies the rows it uses.
  enum class Verify { kAll, kHead };

  explicit Transaction(Database& db) : db_(db), lock_(db.mutex_) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  /// An older copy of the file is frozen: its open works are lost, and its data sets pay for nothing.
  Status begin(Verify verify = Verify::kAll);
  /// Seals what was written, under a new generation, and raises the anchor to it.
  Status commit();
  const Head& head() const { return head_; }

 private:
  friend class Database;
  Status begin_unverified();
  Status freeze(const Mark& seen);

  Database& db_;
  std::lock_guard<std::mutex> lock_;
  Head head_;
  std::uint64_t floor_ = 0;
};

/// A value that is no text.
struct Bytes {
  const std::string& value;
};

/// A prepared statement with its parameters. Errors surface in `step`.
class Statement {
 public:
  template <class... Values>
  Statement(const Database& db, const char* sql, const Values&... values) : db_(db), statement_(db.prepare(sql)) {
    status_ = statement_ == nullptr ? SQLITE_ERROR : SQLITE_OK;
    [[maybe_unused]] int index = 0;
    (bind(++index, values), ...);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { db_.keep(std::move(statement_)); }

  Result<bool> step();  ///< whether there is a row
  Status finish();      ///< for statements without rows

  std::string text(int column) const;
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  int columns() const { return sqlite3_column_count(statement_.get()); }
  int type(int column) const { return sqlite3_column_type(statement_.get(), column); }
  std::string_view name(int column) const { return sqlite3_column_name(statement_.get(), column); }
  bool null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

 private:
  void bind(int index, std::int64_t value);
  void bind(int index, const std::string& value);
  void bind(int index, const Bytes& value);
  void bind(int index, const std::optional<double>& value);

  const Database& db_;
  Database::Prepared statement_;
  int status_;
};

}  // namespace eigenveil::ledger
