// SPDX-License-Identifier: Apache-2.0
#include "score_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/data/npy_file.hpp"

namespace eigenveil {
namespace {

std::string csv_header(const std::vector<std::string>& names) { return fmt::format("{}\n", fmt::join(names, ",")); }

/// The shortest digits that read back as the same numbers.
std::string csv_rows(const RowMajorMatrix& scores) {
  std::string text;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    for (Eigen::Index k = 0; k < scores.cols(); ++k) {
      fmt::format_to(std::back_inserter(text), "{}{}", k == 0 ? "" : ",", scores(i, k));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Result<ScoreFile> ScoreFile::create(const std::string& path, const std::vector<std::string>& names) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") return ScoreFile(EIGENVEIL_TRY(NpyFile::create(path, names.size())));
  if (extension != ".csv")
    return usage_error(fmt::format("{}: scores are written as .csv or .npy. Choose a name that ends so.", path));
  auto file = EIGENVEIL_TRY(AtomicFile::create(path));
  EIGENVEIL_TRY(file.append(csv_header(names)));
  return ScoreFile(std::move(file));
}

Status ScoreFile::append(const RowMajorMatrix& scores) {
  rows_ += scores.rows();
  if (auto* npy = std::get_if<NpyFile>(&file_)) return npy->append(scores);
  return std::get<AtomicFile>(file_).append(csv_rows(scores));
}

Status ScoreFile::commit() {
  return std::visit([](auto& file) { return file.commit(); }, file_);
}

}  // namespace eigenveil
