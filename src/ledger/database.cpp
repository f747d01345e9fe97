// SPDX-License-Identifier: Apache-2.0
#include "database.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "key_file.hpp"
#include "schema.hpp"
#include "seal.hpp"

namespace eigenveil::ledger {
namespace {

Error cannot_make(const std::string& path) {
  return bad_input(fmt::format("Cannot create '{}' for the ledger: {}. Choose another place with `ledger` FILE.", path,
                               std::strerror(errno)));
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
  EIGENVEIL_TRY(make_folder(folder.parent_path()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return cannot_make(folder.string());
  return {};
}

// mknod makes the file without a descriptor: closing one would drop the locks this process holds on it elsewhere.
Status make_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (::mknod(path.c_str(), S_IFREG | 0600, 0) != 0 && errno != EEXIST) return cannot_make(path.string());
  if (!std::filesystem::is_regular_file(path, ignored))
    return bad_input(fmt::format(
        "The ledger '{}' is a folder, a device or a link to nothing, not a file. Give a file with `ledger`.",
        path.string()));
  return {};
}

Result<std::int64_t> integer_of(const Database& db, const char* sql) {
  Statement query(db, sql);
  EIGENVEIL_TRY(query.step());
  return query.integer(0);
}

}  // namespace

Result<std::shared_ptr<Database>> Database::open(const std::string& path, std::chrono::milliseconds busy_timeout) {
  std::error_code failed;
  // Absolute, so that no name means a temporary or in-memory database to SQLite.
  const std::filesystem::path file = std::filesystem::absolute(path, failed);
  if (path.empty() || failed) return usage_error("The ledger needs a file name: `ledger` FILE");
  EIGENVEIL_TRY(make_folder(file.parent_path()));
  EIGENVEIL_TRY(make_file(file));
  const std::filesystem::path canonical = std::filesystem::canonical(file, failed);
  if (failed) return bad_input(fmt::format("The ledger '{}' cannot be found: {}.", path, failed.message()));
  std::shared_ptr<Database> db(new Database(canonical.string()));
  db->anchor_ = db->path_ + ".anchor";
  EIGENVEIL_TRY(db->connect(busy_timeout));
  EIGENVEIL_TRY(db->prepare_schema());
  Transaction whole(*db);
  EIGENVEIL_TRY(whole.begin());
  return db;
}

// One file, one name, for as long as it is open: under another name it would have another key, anchor, lock and
// journal, and a charge to a file that has lost its name is a charge that nobody finds.
Status Database::check_name() {
  int moved = 0;
  struct stat now {};
  if (sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved != 0 ||
      ::stat(path_.c_str(), &now) != 0)
    return bad_input(fmt::format(
        "The ledger '{}' was moved, removed or replaced while it was in use. Nothing was charged; run again.", path_));
  if (now.st_nlink != 1)
    return bad_input(
        fmt::format("The ledger '{}' has {} names (hard links), and what one charges the other might not see. Remove "
                    "all but one; a "
                    "backup is a copy, not a link. Until then nothing can be charged to it.",
                    path_, now.st_nlink));
  return {};
}

Status Database::connect(std::chrono::milliseconds busy_timeout) {
  if (sqlite3_open_v2(path_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK)
    return error();
  sqlite3_busy_timeout(handle_, static_cast<int>(busy_timeout.count()));
  if (sqlite3_db_readonly(handle_, "main") == 1)
    return bad_input(fmt::format(
        "The ledger '{}' cannot be written: its permissions or its disk are read-only. Nothing was charged.", path_));
  sqlite3_update_hook(
      handle_,
      [](void* touched, int, const char*, const char* table, sqlite3_int64 row) {
        if (std::string_view(table) != "head") static_cast<std::set<RowName>*>(touched)->emplace(table, row);
      },
      &touched_);
  // The rollback journal is overwritten in place, commit after commit: one that is made and removed changes the folder,
  // and each change waits for the file system's own journal. No write-ahead log: it needs memory that all users share,
  // and a home folder may be that of several machines, each of which would spend the same budget.
  return run("PRAGMA foreign_keys = ON; PRAGMA journal_mode = PERSIST; PRAGMA synchronous = EXTRA");
}

Database::~Database() {
  idle_.clear();
  if (handle_ != nullptr) (void)run("PRAGMA journal_mode = DELETE");  // and takes it away, unless others are at work
  sqlite3_close(handle_);
}

Database::Prepared Database::prepare(const char* sql) const {
  if (const auto found = idle_.find(std::string_view(sql)); found != idle_.end())
    return std::move(idle_.extract(found).mapped());
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr);
  return Prepared(statement);
}

void Database::keep(Prepared statement) const {
  if (statement == nullptr) return;
  sqlite3_reset(statement.get());
  sqlite3_clear_bindings(statement.get());
  std::string sql = sqlite3_sql(statement.get());
  idle_.emplace(std::move(sql), std::move(statement));
}

Status Database::prepare_schema() {
  Transaction transaction(*this);
  EIGENVEIL_TRY(transaction.begin_unverified());
  const auto tables = EIGENVEIL_TRY(integer_of(*this, "SELECT count(*) FROM sqlite_schema"));
  const auto application = EIGENVEIL_TRY(integer_of(*this, "PRAGMA application_id"));
  const auto format = integer_of(*this, "PRAGMA user_version");
  if (!format) return format.error();
  const bool empty = tables == 0 && application == 0 && *format == 0;
  if (!empty && application != kApplicationId)
    return bad_input(
        fmt::format("'{}' is a database of another program, not a ledger. Choose another file with `ledger`.", path_));
  if (!empty && (*format < 1 || *format > kFormat))
    return bad_input(fmt::format(
        "The ledger '{}' has format {}, this program knows format {}: use the version of eigenveil that wrote it.",
        path_, *format, kFormat));
  EIGENVEIL_TRY(check_integrity());
  key_ = EIGENVEIL_TRY(load_key(path_ + ".key", *format < kSealedFormat));
  if (empty) {
    const auto seen = EIGENVEIL_TRY(read_anchor(anchor_, false));
    if (seen != Mark{})
      return bad_input(fmt::format(
          "The ledger '{}' is empty, but '{}' has seen generation {} of it: bring it back from a backup. To "
          "begin anew with nothing spent, remove that file too.",
          path_, anchor_, seen.generation));
  }
  if (*format < kFormat) EIGENVEIL_TRY(bring_up_to_date(*format));
  // Written each time: a ledger that cannot be written is found here, before any work is done for it.
  EIGENVEIL_TRY(run(fmt::format("PRAGMA user_version = {}", kFormat).c_str()));
  return *format < kFormat ? transaction.commit() : run("COMMIT");
}

// What a format without checksums holds is sealed as it is. Rows that have theirs keep them: they are verified
// afterwards, as is what new rows were made from.
Status Database::bring_up_to_date(std::int64_t format) {
  if (format < 1) {
    EIGENVEIL_TRY(run(kFirstFormat));
    EIGENVEIL_TRY(run(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str()));
  }
  if (format < 2) EIGENVEIL_TRY(run(kSecondFormat));
  if (format < kSealedFormat) EIGENVEIL_TRY(run(kThirdFormat));
  if (format < 4) EIGENVEIL_TRY(run(kFourthFormat));
  EIGENVEIL_TRY(run(kFifthFormat));
  if (format < kSealedFormat) touched_ = EIGENVEIL_TRY(all_rows(*this));
  return {};
}

Status Database::check_integrity() {
  Statement check(*this, "PRAGMA integrity_check(1)");
  EIGENVEIL_TRY(check.step());
  if (check.text(0) == "ok") return {};
  return bad_input(
      fmt::format("The ledger '{}' is damaged ({}). Restore it from a backup; until then nothing can be charged to it.",
                  path_, check.text(0)));
}

Status Database::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return {};
}

Error Database::error() const {
  const std::string ledger = fmt::format("The ledger '{}'", path_);
  switch (sqlite3_errcode(handle_)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return internal_error(ledger + " is locked by another process for too long. Try again when that has finished.");
    case SQLITE_FULL:
      return internal_error(ledger +
                            " cannot be written: the disk is full. Make room, or choose another with `ledger`.");
    case SQLITE_NOTADB:
      return bad_input(ledger + " is not a database. Choose another file with `ledger`.");
    case SQLITE_CORRUPT:
      return bad_input(ledger + " is damaged. Restore it from a backup; until then nothing can be charged to it.");
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return bad_input(ledger + " cannot be opened for writing. Check the permissions of the file and of its folder.");
    default:
      return internal_error(fmt::format("{} failed: {} (SQLite code {}).", ledger, sqlite3_errmsg(handle_),
                                        sqlite3_extended_errcode(handle_)));
  }
}

Result<bool> Statement::step() {
  if (status_ == SQLITE_OK) status_ = sqlite3_step(statement_.get());
  if (status_ != SQLITE_ROW && status_ != SQLITE_DONE) return db_.error();
  return std::exchange(status_, SQLITE_OK) == SQLITE_ROW;
}

Status Statement::finish() {
  EIGENVEIL_TRY(step());
  return {};
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return data == nullptr ? std::string() : std::string(data, sqlite3_column_bytes(statement_.get(), column));
}

void Statement::bind(int index, std::int64_t value) {
  if (status_ == SQLITE_OK) status_ = sqlite3_bind_int64(statement_.get(), index, value);
}
void Statement::bind(int index, const std::string& value) {
  if (status_ == SQLITE_OK)
    status_ =
        sqlite3_bind_text(statement_.get(), index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
}
void Statement::bind(int index, const Bytes& value) {
  if (status_ == SQLITE_OK)
    status_ = sqlite3_bind_blob64(statement_.get(), index, value.value.data(), value.value.size(), SQLITE_TRANSIENT);
}
void Statement::bind(int index, const std::optional<double>& value) {
  if (status_ == SQLITE_OK)
    status_ = value ? sqlite3_bind_double(statement_.get(), index, *value) : sqlite3_bind_null(statement_.get(), index);
}

}  // namespace eigenveil::ledger
