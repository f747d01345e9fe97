#include <fmt/format.h>

#include <algorithm>

#include "csv_text.hpp"
#include "eigenveil/data/schema.hpp"
#include "format.hpp"
#include "text.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kRowsLooked = 1000;

struct Guess {
  std::string name;
  bool numeric = true;
};

Result<std::vector<Guess>> guess_text(const data::Recognised& from, const SourceOptions& options) {
  Result<std::unique_ptr<data::CsvText>> csv = data::CsvText::open(from.stream(), options);
  if (!csv.ok()) return csv.error();
  data::CsvText& text = **csv;
  const Result<data::Selection> selection = data::select_columns(text.path(), text.columns(), options);
  if (!selection.ok()) return selection.error();
  std::vector<Guess> guesses;
  for (const std::string& name : selection->names) guesses.push_back({name, true});

  std::vector<std::string> fields;
  while (text.rows_done() < kRowsLooked) {
    const Result<bool> found = text.find_row();
    if (!found.ok()) return found.error();
    if (!*found) break;
    const char* at = nullptr;
    std::size_t line_breaks = 0;
    EIGENVEIL_TRY(text.texts(fields, at, line_breaks));
    if (fields.size() != text.columns().count) return text.ragged(fields.size());
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      const std::string& field = fields[selection->positions[i]];
      guesses[i].numeric = guesses[i].numeric && (data::is_missing(field) || data::parse_number(field));
    }
    text.finish_row(at, line_breaks);
  }
  return guesses;
}

Result<std::vector<Guess>> guess(const std::string& path, const SourceOptions& options) {
  const Result<data::Recognised> found = data::recognise(path);
  if (!found.ok()) return found.error();
  if (found->format == data::Format::kCsv) return guess_text(*found, options);
  const Result<std::unique_ptr<RowSource>> source = open_source(path, options);
  if (!source.ok()) return source.error();
  std::vector<Guess> guesses;
  for (const std::string& name : (*source)->columns()) guesses.push_back({name, true});
  return guesses;
}

/// A TOML basic string.
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + '"';
}

constexpr std::string_view kIntroduction =
    R"(# What is publicly known about the columns. Complete it before any private row is used:
#  - numeric: remove the # before lower and upper, and write bounds that you know without looking at the data, from
#    the meaning of the column (an age lies between 0 and 120). Values outside are clamped to the nearer bound. Bounds
#    that were read off the data leak what the data hold, and no privacy guarantee covers that.
#  - categorical: remove the # before values, and list the values that the column can have, from its definition.
#    A value that is not listed is an error; name one of the listed values as other to count it as that one.
#  - kinds were guessed from the first rows: a code such as 1, 2, 3 may be better called categorical.
#  - delete the columns that you do not need: fewer columns mean less noise.
)";

constexpr std::string_view kNumeric = R"(
[[column]]
name = {}
kind = "numeric"
# lower =
# upper =
)";

constexpr std::string_view kCategorical = R"(
[[column]]
name = {}
kind = "categorical"
# values = ["", ""]
# other = ""
)";

}  // namespace

Result<std::string> schema_template(const std::string& path, const SourceOptions& options) {
  const Result<std::vector<Guess>> guesses = guess(path, options);
  if (!guesses.ok()) return guesses.error();
  std::string text(kIntroduction);
  for (const Guess& column : *guesses)
    text += column.numeric ? fmt::format(kNumeric, toml_string(column.name))
                           : fmt::format(kCategorical, toml_string(column.name));
  return text;
}

}  // namespace eigenveil
