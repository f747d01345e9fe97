// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_map>

#include "schema_check.hpp"
#include "text.hpp"
#include "toml_file.hpp"

namespace eigenveil {
namespace {

using data::in_quotes;

/// Turns the tables of one schema file into columns; every refusal names file and line.
class SchemaReader {
 public:
  explicit SchemaReader(const std::string& path) : path_(path) {}

  Result<Schema> read(const toml::table& root) {
    for (const auto& [key, node] : root)
      if (key != "column" && key != "header" && key != "delimiter" && key != "fields")
        return wrong(node, fmt::format("unknown key {}; a schema is a list of [[column]] tables, and may state header, "
                                       "delimiter and fields above them",
                                       in_quotes(key.str())));
    const toml::array* tables = root["column"].as_array();
    if (tables == nullptr || tables->empty())
      return bad_input(fmt::format("{}: has no columns; write one [[column]] table per column", path_));
    Schema schema;
    EIGENVEIL_TRY(file_facts(root, schema));
    for (const toml::node& node : *tables) {
      const toml::table* table = node.as_table();
      if (table == nullptr) return wrong(node, "a column must be a table that begins with [[column]]");
      Result<ColumnSpec> spec = column(*table);
      if (!spec.ok()) return spec.error();
      const auto [first, is_new] = lines_.try_emplace(spec->name, table->source().begin.line);
      if (!is_new)
        return wrong(*table,
                     fmt::format("column {} was already described in line {}", in_quotes(spec->name), first->second));
      schema.columns.push_back(std::move(*spec));
    }
    return schema;
  }

 private:
  /// What the schema states about the lines of a CSV file.
  Status file_facts(const toml::table& root, Schema& schema) const {
    if (const toml::node* node = root.get("header")) {
      const auto text = node->value_exact<std::string>();
      if (text != "yes" && text != "no") return wrong(*node, "write header = \"yes\" or header = \"no\"");
      schema.header = text == "yes" ? HeaderRule::kYes : HeaderRule::kNo;
    }
    if (const toml::node* node = root.get("delimiter")) {
      const auto found = delimiter_from_name(node->value_exact<std::string>().value_or(""));
      if (!found)
        return wrong(*node, "delimiter must be comma, semicolon, tab, bar, space or one character, in quotes");
      schema.delimiter = *found;
    }
    if (const toml::node* node = root.get("fields")) {
      const auto count = node->value_exact<std::int64_t>();
      if (!count || *count < 1) return wrong(*node, "fields must be a whole number from 1");
      schema.fields = *count;
    }
    return {};
  }

  Error wrong(const toml::node& node, const std::string& what) const {
    return bad_input(fmt::format("{}: line {}: {}", path_, node.source().begin.line, what));
  }

  Result<ColumnSpec> column(const toml::table& table) const {
    const auto name = table["name"].value_exact<std::string>();
    if (!name) return wrong(table, "this column has no name; write name = \"...\" in quotes");
    const auto kind = table["kind"].value_exact<std::string>();
    if (!kind || (*kind != "numeric" && *kind != "categorical"))
      return wrong(table,
                   fmt::format("column {}: write kind = \"numeric\" or kind = \"categorical\"", in_quotes(*name)));
    Result<ColumnSpec> spec = *kind == "numeric" ? numeric(table, *name) : categorical(table, *name);
    if (!spec.ok()) return spec;
    if (const auto problem = data::problem_of(*spec))
      return wrong(table, fmt::format("column {}: {}", in_quotes(*name), *problem));
    return spec;
  }

  /// A misspelt `lower` must not pass as a column without bounds.
  Status only(const toml::table& table, const std::string& name, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, node] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        return wrong(node, fmt::format("column {}: unknown key {}; expected {}", in_quotes(name), in_quotes(key.str()),
                                       fmt::join(known, ", ")));
    return {};
  }

  Result<ColumnSpec> numeric(const toml::table& table, const std::string& name) const {
    EIGENVEIL_TRY(only(table, name, {"name", "kind", "lower", "upper", "missing"}));
    if (!table.contains("lower") || !table.contains("upper"))
      return wrong(table,
                   fmt::format("column {}: fill in lower and upper: public bounds that you know without looking at "
                               "the data",
                               in_quotes(name)));
    for (const char* key : {"lower", "upper", "missing"})
      if (table.contains(key) && !table[key].is_number())
        return wrong(*table.get(key), fmt::format("column {}: {} must be a number", in_quotes(name), key));
    return ColumnSpec{name, NumericColumn{*table["lower"].value<double>(), *table["upper"].value<double>(),
                                          table["missing"].value<double>()}};
  }

  Result<std::optional<std::size_t>> one_of(const toml::table& table, const std::string& name,
                                            const std::vector<std::string>& values, const char* key,
                                            const char* what) const {
    if (!table.contains(key)) return std::optional<std::size_t>();
    const auto text = table[key].value_exact<std::string>();
    const auto found = std::find(values.begin(), values.end(), text.value_or(""));
    if (!text || found == values.end())
      return wrong(*table.get(key), fmt::format("column {}: {} must be one of the values: it stands for {}",
                                                in_quotes(name), key, what));
    return std::optional<std::size_t>(found - values.begin());
  }

  Result<ColumnSpec> categorical(const toml::table& table, const std::string& name) const {
    EIGENVEIL_TRY(only(table, name, {"name", "kind", "values", "other", "missing", "weight"}));
    const toml::array* values = table["values"].as_array();
    if (values == nullptr)
      return wrong(table,
                   fmt::format("column {}: fill in values: the public list of values, e.g. values = [\"a\", \"b\"]",
                               in_quotes(name)));
    CategoricalColumn kind;
    for (const toml::node& value : *values) {
      const auto text = value.value_exact<std::string>();
      if (!text) return wrong(value, fmt::format("column {}: every value must be a text in quotes", in_quotes(name)));
      kind.values.push_back(*text);
    }
    kind.other = EIGENVEIL_TRY(one_of(table, name, kind.values, "other", "those that are not listed"));
    kind.missing = EIGENVEIL_TRY(one_of(table, name, kind.values, "missing", "those that are missing"));
    if (table.contains("weight")) {
      if (!table["weight"].is_number())
        return wrong(*table.get("weight"), fmt::format("column {}: weight must be a number", in_quotes(name)));
      kind.weight = *table["weight"].value<double>();
    }
    return ColumnSpec{name, std::move(kind)};
  }

  const std::string& path_;
  std::unordered_map<std::string, toml::source_index> lines_;
};

}  // namespace

Result<Schema> read_schema(const std::string& path) {
  const auto root = EIGENVEIL_TRY(data::read_toml(path));
  return SchemaReader(path).read(root);
}

}  // namespace eigenveil
