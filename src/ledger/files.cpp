// Which files belong to which data set.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "account.hpp"
#include "eigenveil/ledger/content_key.hpp"

namespace eigenveil {

using ledger::Statement;
using ledger::Transaction;

namespace {

struct FileKey {
  std::string path;
  std::string content;
};

struct FileKeys {
  std::vector<FileKey> own;      // the file; or the folder and its files
  std::set<std::string> around;  // the folders that they lie in, links followed
};

// A key of its own per use: what a hash of one kind tells says nothing about the other.
std::string subkey(const ledger::Database& db, std::string_view use) {
  return ledger::to_bytes(ledger::KeyedHash(db.key()).field("subkey").field(use).finish());
}

Result<FileKeys> keys_of(const ledger::Database& db, const std::string& path) {
  const auto content = EIGENVEIL_TRY(content_keys(path, subkey(db, "content")));
  const std::string path_key = subkey(db, "path");
  const auto hash = [&](const std::filesystem::path& canonical) {
    return ledger::to_hex(ledger::KeyedHash(path_key).field(canonical.string()).finish());
  };
  FileKeys keys;
  const auto add = [&](const std::string& file, const std::string& held) -> Status {
    std::error_code failed;
    const auto canonical = std::filesystem::canonical(file, failed);
    if (failed) return bad_input(file + ": cannot be read (" + failed.message() + ")");
    keys.own.push_back({hash(canonical), held});
    keys.around.insert(hash(canonical.parent_path()));
    return {};
  };
  EIGENVEIL_TRY(add(path, content.whole));
  for (const auto& part : content.parts) EIGENVEIL_TRY(add(part.path, part.content));
  return keys;
}

// By the path or the content of the whole or of a part, or because a folder that it lies in belongs there.
Result<std::vector<std::string>> owners_of(const ledger::Database& db, const FileKeys& keys) {
  std::set<std::string> paths = keys.around;
  std::set<std::string> contents;
  for (const FileKey& key : keys.own) {
    paths.insert(key.path);
    contents.insert(key.content);
  }
  std::set<std::string> names;
  Statement row(db,
                "SELECT name, path, content FROM dataset JOIN file ON file.dataset = dataset.id WHERE epsilon IS NOT "
                "NULL");
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return std::vector<std::string>(names.begin(), names.end());
    if (paths.count(row.text(1)) > 0 || contents.count(row.text(2)) > 0) names.insert(row.text(0));
  }
}

}  // namespace

Result<std::vector<std::string>> Ledger::bind_file(const std::string& dataset, const std::string& path) {
  const auto keys = EIGENVEIL_TRY(keys_of(*db_, path));
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  const auto account = EIGENVEIL_TRY(ledger::load_account(*db_, dataset));
  for (const FileKey& key : keys.own)
    EIGENVEIL_TRY(Statement(*db_, "INSERT OR IGNORE INTO file(dataset, path, content) VALUES (?, ?, ?)", account.id,
                            key.path, key.content)
                      .finish());
  auto owners = owners_of(*db_, keys);
  EIGENVEIL_TRY(transaction.commit());
  return owners;
}

Result<std::vector<std::string>> Ledger::budgets_of(const std::string& path) {
  {
    Transaction transaction(*db_);
    EIGENVEIL_TRY(transaction.begin());
    Statement any(*db_, "SELECT 1 FROM file LIMIT 1");
    const auto found = EIGENVEIL_TRY(any.step());
    if (!found) return std::vector<std::string>();  // a long file is not read for nothing
  }
  const auto keys = EIGENVEIL_TRY(keys_of(*db_, path));
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  return owners_of(*db_, keys);
}

Result<std::string> Ledger::content_key(const std::string& path) const {
  return named_content_key(path, subkey(*db_, "content"));
}

Status Ledger::check_owner(const std::string& dataset, const std::string& path) {
  const auto budgets = EIGENVEIL_TRY(budgets_of(path));
  if (budgets.empty() || std::count(budgets.begin(), budgets.end(), dataset) > 0) return {};
  return budget_refused(
      fmt::format("{} belongs to the data set {}, whose budget '{}' cannot stand in for: name by --dataset one that it "
                  "belongs to",
                  path, fmt::join(budgets, ", "), dataset));
}

}  // namespace eigenveil
