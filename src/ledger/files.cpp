// Which files belong to which data set.
#include <filesystem>

#include "account.hpp"
#include "eigenveil/ledger/content_key.hpp"

namespace eigenveil {

using ledger::Statement;
using ledger::Transaction;

namespace {

struct FileKeys {
  std::string path;
  std::string content;
};

// A key of its own per use: what a hash of one kind tells says nothing about the other.
std::string subkey(const ledger::Database& db, std::string_view use) {
  return ledger::to_bytes(ledger::KeyedHash(db.key()).field("subkey").field(use).finish());
}

Result<FileKeys> keys_of(const ledger::Database& db, const std::string& path) {
  std::error_code failed;
  const auto canonical = std::filesystem::canonical(path, failed);
  if (failed) return bad_input(path + ": cannot be read (" + failed.message() + ")");
  auto content = content_key(path, subkey(db, "content"));
  if (!content) return content.error();
  return FileKeys{ledger::to_hex(ledger::KeyedHash(subkey(db, "path")).field(canonical.string()).finish()),
                  *std::move(content)};
}

Result<std::vector<std::string>> owners_of(const ledger::Database& db, const FileKeys& keys) {
  std::vector<std::string> names;
  Statement row(
      db,
      "SELECT DISTINCT name FROM dataset JOIN file ON file.dataset = dataset.id WHERE epsilon IS NOT NULL AND "
      "(path = ? OR content = ?) ORDER BY name",
      keys.path, keys.content);
  for (;;) {
    const auto more = row.step();
    if (!more) return more.error();
    if (!*more) return names;
    names.push_back(row.text(0));
  }
}

}  // namespace

Result<std::vector<std::string>> Ledger::bind_file(const std::string& dataset, const std::string& path) {
  const auto keys = keys_of(*db_, path);
  if (!keys) return keys.error();
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto account = ledger::load_account(*db_, dataset);
  if (!account) return account.error();
  EIGENVEIL_TRY(Statement(*db_, "INSERT OR IGNORE INTO file(dataset, path, content) VALUES (?, ?, ?)", account->id,
                          keys->path, keys->content)
                    .finish());
  auto owners = owners_of(*db_, *keys);
  EIGENVEIL_TRY(transaction.commit());
  return owners;
}

Result<std::vector<std::string>> Ledger::budgets_of(const std::string& path) {
  {
    Transaction transaction(*db_);
    EIGENVEIL_TRY(transaction.begin());
    Statement any(*db_, "SELECT 1 FROM file LIMIT 1");
    const auto found = any.step();
    if (!found) return found.error();
    if (!*found) return std::vector<std::string>();  // a long file is not read for nothing
  }
  const auto keys = keys_of(*db_, path);
  if (!keys) return keys.error();
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  return owners_of(*db_, *keys);
}

Result<std::string> Ledger::content_key(const std::string& path) const {
  return eigenveil::content_key(path, subkey(*db_, "content"));
}

}  // namespace eigenveil
