// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// A file or folder and the option that names it.
struct FileUse {
  std::string option;
  std::string path;
};

/// Refuses a command that would write over what it reads, over its ledger or state, or one output over another. Files
/// are told apart by device and inode, so that links and other spellings of a path do not hide them; those that are not
/// there yet, by folder and name. What lies in a folder that is read belongs to it.
Status check_file_uses(const std::vector<FileUse>& read, const std::vector<FileUse>& written);

/// The ledger's file and all that is kept beside it.
std::vector<FileUse> ledger_files(const std::string& ledger);

}  // namespace eigenveil
