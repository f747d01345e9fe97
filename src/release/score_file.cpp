#include "score_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <string_view>

#include "npy.hpp"

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
  const bool npy = extension == ".npy";
  if (!npy && extension != ".csv") {
    return usage_error(fmt::format("{}: scores are written as .csv or .npy. Choose a name that ends so.", path));
  }
  auto file = AtomicFile::create(path);
  if (!file.ok()) return file.error();
  EIGENVEIL_TRY(file->append(npy ? npy_header(0, names.size(), false) : csv_header(names)));
  return ScoreFile(*std::move(file), npy, names.size());
}

Status ScoreFile::append(const RowMajorMatrix& scores) {
  rows_ += static_cast<std::size_t>(scores.rows());
  if (!npy_) return file_.append(csv_rows(scores));
  return file_.append(std::string_view(reinterpret_cast<const char*>(scores.data()),
                                       static_cast<std::size_t>(scores.size()) * sizeof(double)));
}

Status ScoreFile::commit() {
  if (npy_) EIGENVEIL_TRY(file_.overwrite(0, npy_header(rows_, components_, false)));
  return file_.commit();
}

}  // namespace eigenveil
