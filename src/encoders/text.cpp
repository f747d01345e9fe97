// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/data/sha256.hpp"
#include "eigenveil/data/source.hpp"
#include "eigenveil/encoders/catalogue.hpp"
#include "eigenveil/torch/kept.hpp"
#include "in_order.hpp"

namespace eigenveil {
namespace {

// Words in lower case; bytes beyond ASCII belong to words, so other alphabets work.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    if (c >= 0x80 || std::isalnum(c) != 0)
      words.back() += static_cast<char>(c < 0x80 ? std::tolower(c) : c);
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// FNV-1a, then mixed (splitmix64): its low bits alone are not random enough.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

// texts x width
Tensor bytes_of(std::span<const std::string> texts, std::size_t width) {
  Tensor tokens{"tokens", {static_cast<std::int64_t>(texts.size()), static_cast<std::int64_t>(width)}, {}, {}, true};
  tokens.integers.resize(texts.size() * width);
  for (std::size_t row = 0; row < texts.size(); ++row)
    for (std::size_t i = 0; i < std::min(width, texts[row].size()); ++i)
      tokens.integers[row * width + i] = static_cast<unsigned char>(texts[row][i]);
  return tokens;
}

void add_hashed(const std::string& token, std::span<double> sum) {
  const std::uint64_t h = hash_of(token);
  sum[(h >> 1) % sum.size()] += (h & 1) == 0 ? 1.0 : -1.0;
}

}  // namespace

TextEncoder TextEncoder::hash(std::size_t dimensions) {
  TextEncoder encoder;
  encoder.identity_ = {"hash"};
  encoder.dimensions_ = dimensions;
  return encoder;
}

// FILE.npy, a row per word, and the words in FILE.txt, one per line.
Result<TextEncoder> TextEncoder::array_vectors(const std::string& path, const std::string& sha256) {
  const std::string list = path.substr(0, path.size() - 4) + ".txt";
  auto source = EIGENVEIL_TRY(open_source(path, {}));
  const auto words = EIGENVEIL_TRY(read_lines(list, "word"));
  if (const std::size_t rows = source->rows_announced().value_or(0); rows != words.size())
    return bad_input(
        fmt::format("{} has {} rows, but {} has {} words: expected one per row", path, rows, list, words.size()));
  TextEncoder encoder;
  EIGENVEIL_TRY(encoder.identify({path, list}, sha256));
  encoder.dimensions_ = source->columns().size();
  for (RawBatch batch;;) {
    EIGENVEIL_TRY(source->next(batch, 4096));
    if (batch.rows == 0) break;
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const Vector v = Eigen::Map<const Vector>(batch.values.data() + i * encoder.dimensions_, encoder.dimensions_);
      const std::size_t row = batch.first_row + i;
      if (!v.allFinite())
        return bad_input(fmt::format("{}, row {}: has a value that is missing, NaN or infinite", path, row + 1));
      encoder.words_.emplace(words[row], v);
    }
  }
  return encoder;
}

Result<TextEncoder> TextEncoder::vectors(const std::string& path, const std::string& sha256) {
  if (path.ends_with(".npy")) return array_vectors(path, sha256);
  if (path.ends_with(".npz"))
    return bad_input(fmt::format(
        "{}: word vectors are read from text, a word and its numbers per line, or from FILE.npy with the words in "
        "FILE.txt",
        path));
  std::ifstream file(path);
  if (!file) return bad_input(fmt::format("{}: cannot be read", path));
  TextEncoder encoder;
  EIGENVEIL_TRY(encoder.identify({path}, sha256));
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    std::istringstream fields(line);
    std::string word;
    std::vector<double> values;
    if (!(fields >> word)) continue;
    for (double value = 0; fields >> value;) values.push_back(value);
    if (number == 1 && values.size() == 1) continue;  // word2vec begins with its size
    if (encoder.words_.empty()) encoder.dimensions_ = values.size();
    const Vector v = Eigen::Map<const Vector>(values.data(), values.size());
    if (values.empty() || !fields.eof() || values.size() != encoder.dimensions_ || !v.allFinite())
      return bad_input(fmt::format("{}, line {}: expected a word and {} numbers", path, number,
                                   encoder.dimensions_ > 0 ? fmt::to_string(encoder.dimensions_) : "its"));
    encoder.words_.emplace(word, v);
  }
  if (encoder.words_.empty()) return bad_input(fmt::format("{}: holds no word vectors", path));
  return encoder;
}

Status TextEncoder::identify(const std::vector<std::string>& files, const std::string& sha256) {
  auto hash = EIGENVEIL_TRY(sha256_of_files(files));
  identity_ = {"vectors", std::filesystem::path(files.front()).filename().string(), std::move(hash), {}};
  return check_encoder(identity_, sha256);
}

Result<TextEncoder> TextEncoder::torchscript(const std::string& path, const TextModule& module, std::size_t bytes) {
  constexpr const char* kMethod = "encode_text";
  const auto file = EIGENVEIL_TRY(ModuleFile::read(path));
  TextEncoder encoder;
  encoder.identity_ = {"torchscript", file.name, file.sha256};
  EIGENVEIL_TRY(check_encoder(encoder.identity_, module.sha256));
  encoder.identity_.manifest = EIGENVEIL_TRY(file.manifest());
  encoder.bytes_ = bytes;
  const std::string some = "a";
  const Tensor like = bytes_of({&some, 1}, bytes);
  auto opened = EIGENVEIL_TRY(torch_encoder(file, kMethod, like, {.threads = module.threads}));
  if (!module.kept.empty()) opened = EIGENVEIL_TRY(keeping(std::move(opened), module.kept, file.sha256, kMethod, like));
  encoder.module_ = std::move(opened);
  encoder.dimensions_ = encoder.module_->features();
  return encoder;
}

Result<TextEncoder> TextEncoder::from_text(const std::string& name, const TextModule& module) {
  constexpr std::size_t kNamedBytes = 256;
  const auto [kind, file] = split_encoder(name);
  if (name == "hash") return hash();
  if (kind == "vectors" && !file.empty()) return vectors(file, module.sha256);
  if (kind == "torchscript" && !file.empty()) return torchscript(file, module);
  std::string names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.side != "text") continue;
    names += entry.name + ", ";
    if (entry.name != name) continue;
    const auto path = EIGENVEIL_TRY(fetched_encoder(entry));
    EIGENVEIL_TRY(check_named(entry, EIGENVEIL_TRY(sha256_of_files({path}))));
    TextModule known = module;
    if (known.sha256.empty()) known.sha256 = entry.sha256;  // of the bytes that are run
    auto encoder = EIGENVEIL_TRY(torchscript(path, known, kNamedBytes));
    encoder.identity_.kind = name;
    return encoder;
  }
  return usage_error(fmt::format("`text_encoder` must be hash, {}vectors:FILE or torchscript:FILE, but is {}", names,
                                 eigenveil::quote(name)));
}

void TextEncoder::add_words(const std::string& text, std::span<double> sum) const {
  for (const std::string& word : words_of(text)) {
    if (!words_.empty()) {
      const auto found = words_.find(word);
      for (std::size_t j = 0; found != words_.end() && j < sum.size(); ++j) sum[j] += found->second[j];
      continue;
    }
    add_hashed(word, sum);
    const std::string edged = "<" + word + ">";
    for (std::size_t length = 3; length <= 5; ++length)
      for (std::size_t at = 0; at + length <= edged.size(); ++at) add_hashed(edged.substr(at, length), sum);
  }
}

Result<RowMajorMatrix> TextEncoder::encode(std::span<const std::string> texts, const Where& where,
                                           BadRows bad_rows) const {
  RowMajorMatrix rows = RowMajorMatrix::Zero(texts.size(), dimensions_);
  std::vector<bool> missing(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    missing[i] = words_of(texts[i]).empty();
    if (missing[i] && bad_rows == BadRows::kError)
      return bad_input(
          fmt::format("{}: {} is no text: it has neither letters nor digits", where(i), eigenveil::quote(texts[i])));
    if (!module_) add_words(texts[i], {rows.row(i).data(), dimensions_});
  }
  if (module_) {
    std::vector<std::string> known(texts.begin(), texts.end());
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (missing[i]) known[i] = "a";  // a module sees no text that is none
    auto encoded = module_->encode(bytes_of(known, bytes_));
    if (!encoded) return encoded;
    rows = *std::move(encoded);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::span<double> row{rows.row(i).data(), dimensions_};
    make_unit(row);
    missing[i] = missing[i] || !(squares_in_order(row) > 0);
    if (missing[i]) std::fill(row.begin(), row.end(), std::numeric_limits<double>::quiet_NaN());
    if (missing[i] && bad_rows == BadRows::kError)
      return bad_input(
          fmt::format("{}: {}: {} knows none of its words", where(i), eigenveil::quote(texts[i]), identity_.kind));
  }
  return rows;
}

Result<Vector> TextEncoder::encode(const std::string& text) const {
  const auto rows = EIGENVEIL_TRY(encode({&text, 1}, [](std::size_t) { return "a text"; }));
  return Vector(rows.row(0).transpose());
}

Result<std::vector<std::string>> read_lines(const std::string& path, const char* what) {
  std::ifstream file(path);
  if (!file) return bad_input(fmt::format("{}: cannot be read; expected one {} a line", path, what));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  const auto blank = [](const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; };
  while (!lines.empty() && blank(lines.back())) lines.pop_back();
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (blank(lines[i])) return bad_input(fmt::format("{}, line {}: the {} is empty", path, i + 1, what));
  if (lines.empty()) return bad_input(fmt::format("{}: is empty; expected one {} a line", path, what));
  return lines;
}

Result<std::vector<std::string>> read_texts(const std::string& path, BadRows bad_rows) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad_input(fmt::format("{}: cannot be read; expected one text a line", path));
  std::vector<std::string> texts;
  bool ended = true;
  for (std::string line; std::getline(file, line);) {
    ended = !file.eof();
    if (!line.empty() && line.back() == '\r') line.pop_back();
    texts.push_back(std::move(line));
  }
  if (!ended && bad_rows == BadRows::kMissing)
    return bad_input(fmt::format(
        "{}: the last line does not end with a newline. With `missing` zero-row it must: an empty last text could not "
        "be told from none",
        path));
  return texts;
}

Result<Matrix> encode_prompts(const TextEncoder& encoder, const std::vector<std::string>& classes,
                              const std::vector<std::string>& prompts) {
  Matrix rows = Matrix::Zero(classes.size(), encoder.dimensions());
  for (std::size_t k = 0; k < classes.size(); ++k) {
    auto row = rows.row(k);
    for (std::string prompt : prompts) {
      const std::size_t hole = prompt.find("{}");
      if (hole == std::string::npos)
        return bad_input(fmt::format("the prompt '{}' has no {{}} where the class goes", prompt));
      const auto encoded = EIGENVEIL_TRY(encoder.encode(prompt.replace(hole, 2, classes[k])));
      row += encoded.transpose();
    }
    if (!(row.norm() > 0)) return bad_input(fmt::format("the prompts of '{}' cancel each other out", classes[k]));
    row.normalize();
  }
  return rows;
}

std::vector<std::string> default_prompts() {
  return {"a photo of a {}", "a picture of a {}", "an image of the {}", "a small grey photo of a {}"};
}

}  // namespace eigenveil
