// SPDX-License-Identifier: Apache-2.0
// Which files belong to which data set.
#include "files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "eigenveil/ledger/content_key.hpp"

namespace eigenveil {

using ledger::Statement;
using ledger::Transaction;

namespace {

// A key of its own per use: what a hash of one kind tells says nothing about the other.
std::string subkey(const ledger::Database& db, std::string_view use) {
  return ledger::to_bytes(ledger::KeyedHash(db.key()).field("subkey").field(use).finish());
}

std::string hash_path(std::string_view path_key, const std::filesystem::path& canonical) {
  return ledger::to_hex(ledger::KeyedHash(path_key).field(canonical.string()).finish());
}

Result<FileKeys::File> keys_of(const ledger::Database& db, const std::string& path) {
  const auto content = EIGENVEIL_TRY(content_keys(path, subkey(db, "content")));
  const std::string path_key = subkey(db, "path");
  FileKeys::File keys{path, {}, {}};
  const auto add = [&](const std::string& file, const std::string& held) -> Status {
    std::error_code failed;
    const auto canonical = std::filesystem::canonical(file, failed);
    if (failed) return bad_input(file + ": cannot be read (" + failed.message() + ")");
    keys.own.push_back({hash_path(path_key, canonical), held});
    keys.around.insert(hash_path(path_key, canonical.parent_path()));
    return {};
  };
  EIGENVEIL_TRY(add(path, content.whole));
  for (const auto& part : content.parts) EIGENVEIL_TRY(add(part.path, part.content));
  return keys;
}

// By the path or the content of the whole or of a part, or because a folder that it lies in belongs there.
Result<std::set<std::string>> owners_of(const ledger::Database& db, const FileKeys::File& file) {
  std::set<std::string> paths = file.around;
  std::set<std::string> contents;
  for (const FileKeys::Key& key : file.own) {
    paths.insert(key.path);
    contents.insert(key.content);
  }
  std::set<std::string> names;
  Statement row(db,
                "SELECT name, path, content FROM dataset JOIN file ON file.dataset = dataset.id WHERE epsilon IS NOT "
                "NULL");
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return names;
    if (paths.count(row.text(1)) > 0 || contents.count(row.text(2)) > 0) names.insert(row.text(0));
  }
}

}  // namespace

Status ledger::refuse_other_owners(const Database& db, const Payer& payer) {
  for (const FileKeys::File& file : payer.files.files) {
    const auto owners = EIGENVEIL_TRY(owners_of(db, file));
    if (!owners.empty() && owners.count(payer.dataset) == 0)
      return budget_refused(
          fmt::format("{} belongs to the data set {}, whose budget '{}' cannot stand in for: name by `dataset` one "
                      "that it belongs to",
                      file.named, fmt::join(owners, ", "), payer.dataset));
  }
  return {};
}

Status ledger::refuse_other_people(const Database& db, const Account& account, const Payer& payer) {
  const auto& files = payer.files.files;
  const auto list = std::find_if(files.begin(), files.end(), [](const FileKeys::File& f) { return f.lists_people; });
  if (list == files.end()) return {};
  Statement row(db, "SELECT content FROM file WHERE dataset = ?", account.id);
  bool any = false;
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) break;
    if (row.text(0) == list->own.front().content) return {};
    any = true;
  }
  if (!any) return {};
  return budget_refused(
      fmt::format("{} is not the list of people that data set '{}' knows: whoever pays for people pays for the same "
                  "ones each time. Give the list that belongs to it, or use a data set that was made with this one "
                  "among its `data`",
                  list->named, payer.dataset));
}

Status ledger::bind_files(const Database& db, std::int64_t dataset, const FileKeys& files) {
  for (const FileKeys::File& file : files.files)
    for (const FileKeys::Key& key : file.own)
      EIGENVEIL_TRY(Statement(db, "INSERT OR IGNORE INTO file(dataset, path, content) VALUES (?, ?, ?)", dataset,
                              key.path, key.content)
                        .finish());
  return {};
}

Result<bool> Ledger::has_files() {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  return Statement(*db_, "SELECT 1 FROM file LIMIT 1").step();
}

Result<FileKeys> Ledger::hash_files(const std::vector<std::string>& paths) const {
  FileKeys keys;
  for (const std::string& path : paths) {
    auto file = EIGENVEIL_TRY(keys_of(*db_, path));
    keys.files.push_back(std::move(file));
  }
  return keys;
}

Result<std::set<std::string>> Ledger::budgets_of(const FileKeys& files) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  std::set<std::string> all;
  for (const FileKeys::File& file : files.files) {
    auto owners = EIGENVEIL_TRY(owners_of(*db_, file));
    all.merge(owners);
  }
  return all;
}

std::string Ledger::path_key(const std::string& path) const {
  std::error_code failed;
  const auto canonical = std::filesystem::weakly_canonical(path, failed);
  return hash_path(subkey(*db_, "path"), failed ? std::filesystem::path(path) : canonical);
}

Result<std::string> Ledger::content_key(const std::string& path) const {
  return named_content_key(path, subkey(*db_, "content"));
}

}  // namespace eigenveil
