// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "csv_text.hpp"
#include "eigenveil/data/schema.hpp"
#include "format.hpp"

namespace eigenveil {
namespace {

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

/// What a template states of the file itself, and the names of its columns.
struct Outline {
  std::string facts;
  std::vector<std::string> names;
};

Result<Outline> outline_of_text(const data::Recognised& from, const SourceOptions& options) {
  const Result<std::unique_ptr<data::CsvText>> csv = data::CsvText::open(from.stream(), options);
  if (!csv.ok()) return csv.error();
  const data::FileColumns& columns = (*csv)->columns();
  Result<data::Selection> selection = data::select_columns((*csv)->path(), columns, options);
  if (!selection.ok()) return selection.error();
  Outline outline{"\nheader = \"yes\"\n", std::move(selection->names)};
  if (options.header == HeaderRule::kNo) outline.facts = fmt::format("\nheader = \"no\"\nfields = {}\n", columns.count);
  if (options.delimiter != '\0')
    outline.facts += fmt::format("delimiter = {}\n", toml_string(std::string_view(&options.delimiter, 1)));
  return outline;
}

Result<Outline> outline_of(const std::string& path, const SourceOptions& options) {
  const Result<data::Recognised> found = data::recognise(path);
  if (!found.ok()) return found.error();
  if (found->format == data::Format::kCsv) return outline_of_text(*found, options);
  const Result<std::unique_ptr<RowSource>> source = open_source(path, options);
  if (!source.ok()) return source.error();
  return Outline{"", (*source)->columns()};
}

constexpr std::string_view kIntroduction =
    R"(# What is publicly known about the columns. Complete it before any private row is used, from what the columns mean and
# not from what they hold. No row was looked at for it. For each column say
#  - kind = "numeric", and remove the # before lower and upper: bounds that you know without looking at the data (an age
#    lies between 0 and 120). Values outside are clamped to the nearer bound. Bounds that were read off the data leak
#    what the data hold, and no privacy guarantee covers that;
#  - or kind = "categorical", and remove the # before values: what the column can have, by its definition. A value that
#    is not listed is an error; name one of the listed values as other to count it as that one. All values of a
#    column together are as long as one number, however many there are: weight = 2 makes them as long as two.
# With --missing value or category a missing cell counts as what missing says, or as the middle of the range.
# Delete the columns that you do not need: fewer columns mean less noise.
)";

constexpr std::string_view kColumn = R"(
[[column]]
name = {}
kind = "" # numeric or categorical
# lower =
# upper =
# values = ["", ""]
# other = ""
# missing =
)";

}  // namespace

Result<std::string> schema_template(const std::string& path, const SourceOptions& options) {
  const Result<Outline> outline = outline_of(path, options);
  if (!outline.ok()) return outline.error();
  std::string text(kIntroduction);
  text += outline->facts;
  for (const std::string& name : outline->names) text += fmt::format(kColumn, toml_string(name));
  return text;
}

}  // namespace eigenveil
