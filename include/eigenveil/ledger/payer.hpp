// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

namespace eigenveil {

/// Private files as a ledger knows them (`Ledger::hash_files`): by keyed hashes of canonical paths and of contents.
struct FileKeys {
  struct Key {
    std::string path;
    std::string content;
  };
  struct File {
    std::string named;             ///< as the operator calls it
    std::vector<Key> own;          ///< the file; or the folder and its files
    std::set<std::string> around;  ///< paths of the folders that they lie in, links followed
    bool lists_people = false;     ///< its lines say whose the rows of the other files, or in memory, are
  };
  std::vector<File> files;
};

/// The data set that pays for a plan, and the files behind it: they belong to a data set with a budget from the charge
/// on, and to none because of a charge that was refused.
struct Payer {
  Payer(std::string name, FileKeys keys = {})  // NOLINT(google-explicit-constructor)
      : dataset(std::move(name)), files(std::move(keys)) {}
  Payer(const char* name) : dataset(name) {}  // NOLINT(google-explicit-constructor)

  std::string dataset;
  FileKeys files;
};

}  // namespace eigenveil
