// SPDX-License-Identifier: Apache-2.0
// Which files belong to which data set.
#include "files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "eigenveil/ledger/content_key.hpp"

namespace eigenveil {

using ledger::Checksum;
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

// Of paths and of contents, which no key has in common; sorted.
using Hashes = std::vector<Checksum>;
using KeyIterator = std::vector<FileKeys::Key>::const_iterator;

Hashes hashes_of(KeyIterator begin, KeyIterator end, const std::set<std::string>& more = {}) {
  Hashes hashes;
  for (; begin != end; ++begin)
    for (const std::string& hash : {begin->path, begin->content}) hashes.push_back(ledger::from_hex(hash));
  for (const std::string& hash : more) hashes.push_back(ledger::from_hex(hash));
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

// As a row of `part` holds them.
Hashes hashes_in(std::string_view bytes) {
  Hashes hashes(bytes.size() / sizeof(Checksum));
  for (std::size_t i = 0; i < hashes.size(); ++i)
    hashes[i] = ledger::from_bytes(bytes.substr(i * sizeof(Checksum), sizeof(Checksum)));
  return hashes;
}

bool is_in(const Hashes& all, const Checksum& one) { return std::binary_search(all.begin(), all.end(), one); }

// Who knows any of the hashes as those of a file in a folder of theirs.
Status add_owners_of_parts(const ledger::Database& db, const Hashes& own, std::set<std::string>& names) {
  Statement row(db,
                "SELECT name, hashes FROM dataset JOIN part ON part.dataset = dataset.id WHERE epsilon IS NOT NULL");
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) return {};
    const Hashes known = hashes_in(row.text(1));
    const Hashes &few = own.size() < known.size() ? own : known, &many = own.size() < known.size() ? known : own;
    if (std::any_of(few.begin(), few.end(), [&](const Checksum& one) { return is_in(many, one); }))
      names.insert(row.text(0));
  }
}

// By the path or the content of the whole or of a part, or because a folder that it lies in belongs there.
Result<std::set<std::string>> owners_of(const ledger::Database& db, const FileKeys::File& file) {
  const Hashes own = hashes_of(file.own.begin(), file.own.end(), file.around);
  std::set<std::string> names;
  Statement row(db,
                "SELECT name, path, content FROM dataset JOIN file ON file.dataset = dataset.id WHERE epsilon IS NOT "
                "NULL");
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) break;
    if (is_in(own, ledger::from_hex(row.text(1))) || is_in(own, ledger::from_hex(row.text(2))))
      names.insert(row.text(0));
  }
  EIGENVEIL_TRY(add_owners_of_parts(db, own, names));
  return names;
}

// What the data set does not know yet, all in one row: of a hundred thousand rows every charge would verify each.
Status bind_parts(const ledger::Database& db, std::int64_t dataset, const FileKeys::File& file) {
  Hashes fresh = hashes_of(file.own.begin() + 1, file.own.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  Statement row(db, "SELECT hashes FROM part WHERE dataset = ?", dataset);
  for (;;) {
    const auto more = EIGENVEIL_TRY(row.step());
    if (!more) break;
    const Hashes known = hashes_in(row.text(0));
    std::erase_if(fresh, [&](const Checksum& one) { return is_in(known, one); });
  }
  if (fresh.empty()) return {};
  std::string bytes;
  for (const Checksum& one : fresh) bytes.append(one.begin(), one.end());
  return Statement(db, "INSERT INTO part(dataset, hashes) VALUES (?, ?)", dataset, ledger::Bytes{bytes}).finish();
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

Status ledger::name_people(FileKeys& files, const std::string& person) {
  const FileKeys::File* list = nullptr;
  for (FileKeys::File& file : files.files) {
    if (person.empty() || std::filesystem::path(file.named).stem() != person) continue;
    if (list != nullptr && list->own.front().content != file.own.front().content)
      return usage_error(
          fmt::format("{} and {} are both called as the people are, and a data set knows one list of "
                      "people: leave one out, or call it otherwise",
                      list->named, file.named));
    file.lists_people = true;
    list = &file;
  }
  return {};
}

namespace {

Result<bool> is_file_of(const ledger::Database& db, std::int64_t dataset, const std::string& content) {
  return Statement(db, "SELECT 1 FROM file WHERE dataset = ? AND content = ?", dataset, content).step();
}

}  // namespace

Status ledger::refuse_other_people(const Database& db, const Account& account, const Payer& payer) {
  const auto& files = payer.files.files;
  const auto list = std::find_if(files.begin(), files.end(), [](const FileKeys::File& f) { return f.lists_people; });
  if (list == files.end()) return {};
  const std::string& content = list->own.front().content;
  Statement known(db, "SELECT content FROM people WHERE id = ?", account.id);
  if (EIGENVEIL_TRY(known.step())) {
    const bool settled = !known.text(0).empty();
    if (settled ? known.text(0) == content : EIGENVEIL_TRY(is_file_of(db, account.id, content))) return {};
  } else {
    const auto of_files = EIGENVEIL_TRY(Statement(db, "SELECT 1 FROM file WHERE dataset = ?", account.id).step());
    if (!of_files) return {};
  }
  return budget_refused(
      fmt::format("{} is not the list of people that data set '{}' knows: whoever pays for people pays for the same "
                  "ones each time. Give the list that belongs to it, or use a data set that was made with this one "
                  "among its `data`",
                  list->named, payer.dataset));
}

Status ledger::bind_files(const Database& db, std::int64_t dataset, const FileKeys& files) {
  for (const FileKeys::File& file : files.files) {
    const FileKeys::Key& whole = file.own.front();
    EIGENVEIL_TRY(Statement(db, "INSERT OR IGNORE INTO file(dataset, path, content) VALUES (?, ?, ?)", dataset,
                            whole.path, whole.content)
                      .finish());
    EIGENVEIL_TRY(bind_parts(db, dataset, file));
    if (!file.lists_people) continue;
    EIGENVEIL_TRY(Statement(db,
                            "INSERT INTO people VALUES (?, ?) ON CONFLICT(id) DO UPDATE SET content = "
                            "excluded.content WHERE content = ''",
                            dataset, whole.content)
                      .finish());
  }
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
