// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../data/format.hpp"
#include "eigenveil/data/passing_source.hpp"
#include "eigenveil/data/sliced_source.hpp"
#include "eigenveil/data/whose.hpp"
#include "eigenveil/privacy/secure_random.hpp"
#include "rows_at_hand.hpp"

namespace eigenveil {
namespace {

struct Range {
  std::string column;  // empty: all columns
  NumericColumn bounds;
};

Result<double> bound_number(const std::string& text, const std::string& option) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  return usage_error(fmt::format("`ranges` {}: '{}' is not a number; expected LO:HI or COLUMN=LO:HI", option, text));
}

Result<Range> parse_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string column = equals == std::string::npos ? "" : text.substr(0, equals);
  const std::string bounds = equals == std::string::npos ? text : text.substr(equals + 1);
  const std::size_t colon = bounds.find(':');
  if (colon == std::string::npos)
    return usage_error(
        fmt::format("`ranges` {}: expected LO:HI or COLUMN=LO:HI, for example 0:255 or age=0:120", text));
  const auto lower = EIGENVEIL_TRY(bound_number(bounds.substr(0, colon), text));
  const auto upper = EIGENVEIL_TRY(bound_number(bounds.substr(colon + 1), text));
  if (lower >= upper) return usage_error(fmt::format("`ranges` {}: the lower bound must be below the upper", text));
  return Range{column, {lower, upper}};
}

Result<Schema> schema_from_ranges(const std::vector<std::string>& texts, const std::vector<std::string>& columns) {
  Schema schema;
  std::vector<Range> ranges;
  for (const std::string& text : texts) {
    auto range = EIGENVEIL_TRY(parse_range(text));
    if (!range.column.empty() && std::find(columns.begin(), columns.end(), range.column) == columns.end())
      return usage_error(fmt::format("`ranges` {}: the data has no column '{}'", text, range.column));
    ranges.push_back(std::move(range));
  }
  for (const std::string& column : columns) {
    const Range* chosen = nullptr;
    for (const Range& range : ranges)
      if (range.column == column || (range.column.empty() && (chosen == nullptr || chosen->column.empty())))
        chosen = &range;
    if (chosen == nullptr)
      return usage_error(fmt::format(
          "column '{}' has no range: add `ranges` '{}=LO:HI' with public bounds, or `ranges` LO:HI for all columns",
          column, column));
    schema.columns.push_back({column, chosen->bounds});
  }
  return schema;
}

MissingRule rule_for(MissingPolicy missing) {
  return missing == MissingPolicy::kValue      ? MissingRule::kValue
         : missing == MissingPolicy::kCategory ? MissingRule::kCategory
                                               : MissingRule::kNone;
}

Result<ColumnMap> map_for(const RowOptions& options, const std::optional<Schema>& schema,
                          const std::vector<std::string>& columns) {
  const Centering centering = options.center == Center::kNone ? Centering::kNone : Centering::kRange;
  if (schema) return ColumnMap::from_schema(*schema, centering);
  if (!options.ranges.empty()) {
    const auto ranged = EIGENVEIL_TRY(schema_from_ranges(options.ranges, columns));
    return ColumnMap::from_schema(with_missing(ranged, rule_for(options.missing)), centering);
  }
  if (!options.row_bound)
    return usage_error(
        "the rows need public bounds: give `ranges` LO:HI (or COLUMN=LO:HI), a `schema`, or a `row_bound`. They must "
        "be "
        "known without looking at the data");
  const ColumnMap map = ColumnMap::identity(columns);
  const Schema stated = with_missing({map.specs()}, rule_for(options.missing));
  return ColumnMap::from_parts(stated.columns, map.offset(), map.scale());
}

// What missing cells count as. The class column is not one of the schema's any more; its labels are the last list.
void state_missing(MissingPolicy missing, ClassedColumns& chosen) {
  if (!chosen.schema) return;
  std::vector<Categories> labels;
  if (!chosen.classes.empty() && chosen.cuts.empty()) labels.push_back(chosen.source.categories.back());
  chosen.schema = with_missing(*std::move(chosen.schema), rule_for(missing));
  chosen.source.categories = chosen.schema->categories();
  chosen.source.categories.insert(chosen.source.categories.end(), labels.begin(), labels.end());
}

// Keeps the named columns of a schema, in that order.
Result<Schema> pick_columns(const Schema& schema, const std::vector<std::string>& names, const std::string& place) {
  Schema picked;
  for (const std::string& name : names) {
    const auto found = std::find_if(schema.columns.begin(), schema.columns.end(),
                                    [&](const ColumnSpec& spec) { return spec.name == name; });
    if (found == schema.columns.end())
      return usage_error(fmt::format("{}: the schema does not describe the column '{}'", place, name));
    picked.columns.push_back(*found);
  }
  return picked;
}

}  // namespace

bool elsewhere(const RowOptions& options) { return options.data.empty() && !options.given; }

bool finds_row_bound(const RowOptions& options) { return options.find_row_bound.value_or(!options.row_bound); }

std::string place_of(const RowOptions& options) {
  return options.given ? options.given->name() : options.data.empty() ? "the columns" : options.data;
}

bool in_memory(const RowOptions& options) {
  return options.given || (options.pairs && (options.pairs->given_x || options.pairs->given_y));
}

Result<RowBound> first_bound(const RowOptions& options, const ColumnMap& map) {
  // Views have unit length; a class adds nothing to a row.
  if (options.pairs) return RowBound::of(options.pairs->files.labels.empty() ? std::sqrt(2.0) : 1.0);
  const double largest = map.largest_norm();
  // About a released mean the rows are bounded again; the first time nothing that the ranges allow is cut.
  if (options.row_bound && (!moves_rows(options.center) || !std::isfinite(largest))) return *options.row_bound;
  return RowBound::of(largest);
}

int thread_count(const RunOptions& run) {
  return run.threads > 0 ? run.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

namespace {

BadRows bad_rows(const RowOptions& options) {
  return options.missing == MissingPolicy::kError ? BadRows::kError : BadRows::kMissing;
}

}  // namespace

Result<FileFacts> file_facts(const RowOptions& options) {
  if ((options.schema || options.bounds) && !options.ranges.empty())
    return usage_error("`schema` and `ranges` both give bounds: use one of them");
  FileFacts facts{options.source, options.bounds};
  facts.source.bad_rows = bad_rows(options);
  if (options.schema) {
    facts.schema = EIGENVEIL_TRY(read_schema(*options.schema));
  }
  if (!facts.schema) return facts;
  if (!options.source.columns.empty())
    return usage_error("`schema` and `columns` both choose columns: list the columns in the schema");
  facts.source = EIGENVEIL_TRY(options_for(*facts.schema, facts.source));
  // What a schema says of lines does not matter to rows that no file holds; what the caller says of them is refused.
  if (options.given) {
    facts.source.header = options.source.header;
    facts.source.delimiter = options.source.delimiter;
    facts.source.fields = options.source.fields;
  }
  return facts;
}

namespace {

// Pairs, and whose they are.
class ListedPeople final : public PassingSource {
 public:
  ListedPeople(std::unique_ptr<RowSource> source, std::vector<PersonId> people, std::string path)
      : PassingSource(std::move(source)), people_(std::move(people)), path_(std::move(path)) {}
  // A share of the pairs does not see their end.
  Status check() const {
    const auto pairs = rows_announced();
    if (pairs && people_.size() != *pairs) return other_lines(people_.size() > *pairs);
    return {};
  }
  // Their people are skipped with them. Where nobody knows how many pairs there are these are read, to see the end.
  Status skip(std::size_t rows) override {
    if (!rows_announced()) return RowSource::skip(rows);  // NOLINT(bugprone-parent-virtual-call)
    done_ += rows;
    return source().skip(rows);
  }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    EIGENVEIL_TRY(source().next(batch, max_rows));
    const bool ended = batch.rows == 0;
    if (people_.size() < done_ + batch.rows || (ended && people_.size() != done_)) return other_lines(ended);
    const auto first = people_.begin() + done_;
    batch.people.assign(first, first + batch.rows);
    done_ += batch.rows;
    return {};
  }

 private:
  Error other_lines(bool more) const {
    return bad_input(
        fmt::format("{} has {} lines than there are pairs: every pair needs one", path_, more ? "more" : "fewer"));
  }

  std::vector<PersonId> people_;
  std::string path_;
  std::size_t done_ = 0;
};

PersonColumn::Key fresh_key() {
  PersonColumn::Key key;
  SecureRandom random = SecureRandom::from_kernel();
  for (unsigned char& byte : key) byte = static_cast<unsigned char>(random.next());
  return key;
}

Result<std::vector<PersonId>> listed_people(const std::string& path, const PersonColumn::Key& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad_input(fmt::format("{}: cannot be read", path));
  std::vector<PersonId> people;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    // A mark of its encoding is no part of the first id, as it is none of a CSV file.
    const bool marked = people.empty() && line.starts_with("\xef\xbb\xbf");
    people.push_back(person_of_line(std::string_view(line).substr(marked ? 3 : 0), key));
  }
  return people;
}

// What fits no query over more than one view: pairs have their own bound and names.
Result<OpenedData> opened_pairs(const RowOptions& options, int threads) {
  // Of people the share is taken behind their list.
  const Share& share = options.source.share;
  auto opened = EIGENVEIL_TRY(open_pairs(*options.pairs, bad_rows(options), options.person ? Share{} : share, threads));
  std::vector<std::string> names = opened.source->columns();
  if (opened.inputs->classed) names.pop_back();
  OpenedData data{std::move(opened.source), ColumnMap::identity(names), opened.inputs->classes};
  data.read_with = options.source;
  data.pairs = std::move(opened.inputs);
  if (!options.person) return data;
  EIGENVEIL_TRY(check(*options.person));
  const std::string& path = options.pairs->files.person;
  data.person = options.person->column;
  const auto key = options.people_elsewhere ? options.people_elsewhere->key : fresh_key();
  data.read_with.person = PersonColumn{data.person, key};
  auto listed = std::make_unique<ListedPeople>(std::move(data.source), EIGENVEIL_TRY(listed_people(path, key)), path);
  EIGENVEIL_TRY(listed->check());
  data.source = std::move(listed);
  if (share.count > 1) data.source = data::share_of(std::move(data.source), share);
  return data;
}

}  // namespace

namespace {

// The columns of the first view, then those of the second; how many the first has.
Result<std::size_t> choose_views(const RowOptions& options, const RowsAtHand& rows, FileFacts& facts) {
  auto both = EIGENVEIL_TRY(rows.names(options.first_view));
  const auto second = EIGENVEIL_TRY(rows.names(options.second_view));
  const std::size_t first = both.size();
  both.insert(both.end(), second.begin(), second.end());
  if (facts.schema) {
    facts.schema = EIGENVEIL_TRY(pick_columns(*facts.schema, both, options.schema.value_or("bounds")));
    facts.source.categories = facts.schema->categories();
  }
  facts.source.columns = std::move(both);
  return first;
}

// Of several images one can be replaced and the others still say how large they are.
Status check_images(const RowOptions& options, const SourceOptions& read_with, const RowSource& source) {
  if (read_with.fields != 0 || read_with.share.count > 1 || source.rows_announced() != std::size_t{1} ||
      !std::filesystem::is_directory(options.data))
    return {};
  return bad_input(
      fmt::format("{}: one image alone does not say how large images are: state its number of values with `fields` N",
                  options.data));
}

}  // namespace

Status check(const PersonOptions& person) {
  if (person.least_rows < 1 || person.least_rows > (std::size_t{1} << 31))
    return usage_error("`person_weight` rows:M needs a whole number M from 1 to 2^31");
  if (person.most_rows && (*person.most_rows < 1 || *person.most_rows >= (std::size_t{1} << 31)))
    return usage_error("`max_rows_per_person` must be a whole number from 1 to 2^31 - 1");
  return {};
}

namespace {

// The column that says whose row it is is none of the others.
Status choose_person(const PersonOptions& person, const RowsAtHand& rows, FileFacts& facts) {
  EIGENVEIL_TRY(check(person));
  const auto own = EIGENVEIL_TRY(rows.names({person.column}));
  if (own.size() != 1)
    return usage_error(fmt::format("'{}' is more than one column; a person's id is in one", person.column));
  const std::string& name = own.front();
  if (facts.schema && std::any_of(facts.schema->columns.begin(), facts.schema->columns.end(),
                                  [&](const ColumnSpec& spec) { return spec.name == name; }))
    return usage_error(fmt::format(
        "the schema describes '{}' as a feature, but it says whose row it is: take it out of the schema", name));
  if (!facts.schema && facts.source.columns.empty()) {
    facts.source.columns = EIGENVEIL_TRY(rows.names({}));
    std::erase(facts.source.columns, name);
    if (facts.source.columns.empty())
      return bad_input(fmt::format("there is no column but '{}': nothing is left to work on", name));
  }
  facts.source.person = PersonColumn{name, fresh_key()};
  return {};
}

PersonRule rule_of(const PersonOptions& person, const RunOptions& run, bool batches) {
  PersonRule rule{person.least_rows, person.most_rows, person.missing_is_own, batches};
  // A seed repeats everything; its stream is not that of the noise.
  constexpr std::uint64_t kOther = 0x9e3779b97f4a7c15;
  const auto random = std::make_shared<SecureRandom>(
      run.insecure_seed ? SecureRandom::insecure(*run.insecure_seed ^ kOther) : SecureRandom::from_kernel());
  rule.below = [random](std::uint64_t n) { return random->below(n); };
  return rule;
}

}  // namespace

Result<OpenedData> open_data(const RowOptions& options, int threads) {
  if (options.pairs && rule_for(options.missing) != MissingRule::kNone)
    return usage_error("`missing` value and category are for cells of a table: of pairs use error or zero-row");
  if (options.pairs) return opened_pairs(options, threads);
  auto facts = EIGENVEIL_TRY(file_facts(options));
  auto rows = EIGENVEIL_TRY(RowsAtHand::open(options, facts.source));
  if (options.person && !elsewhere(options)) EIGENVEIL_TRY(choose_person(*options.person, rows, facts));
  if (options.person && options.people_elsewhere) facts.source.person->key = options.people_elsewhere->key;
  std::string person = facts.source.person ? facts.source.person->column
                       : options.person    ? options.person->column
                                           : std::string();
  std::size_t first_view = 0;
  if (!options.first_view.empty()) first_view = EIGENVEIL_TRY(choose_views(options, rows, facts));
  ClassedColumns chosen{std::move(facts.source), std::move(facts.schema), {}, {}, {}};
  if (options.class_column)
    chosen =
        EIGENVEIL_TRY(with_class_column(rows, place_of(options), chosen.source, chosen.schema, *options.class_column));
  if (options.class_column && options.response) return bad_input("rows have classes or a response, not both");
  if (options.response)
    EIGENVEIL_TRY(put_response_last(rows, place_of(options), *options.response, chosen.source, chosen.schema));
  state_missing(options.missing, chosen);
  auto features = EIGENVEIL_TRY(rows.names(chosen.source.columns));
  if (options.class_column) features.pop_back();
  auto source = EIGENVEIL_TRY(rows.take(chosen.source));
  if (source && !options.given) EIGENVEIL_TRY(check_images(options, chosen.source, *source));
  auto map = EIGENVEIL_TRY(map_for(options, chosen.schema, features));
  std::optional<ResponseShares> shares;
  if (options.response) {
    shares = options.response->shares.value_or(default_shares(options, map));
    map = EIGENVEIL_TRY(map_with(*shares, map));
  }
  if (source && !chosen.cuts.empty()) source = std::make_unique<SlicedSource>(std::move(source), chosen.cuts);
  return OpenedData{std::move(source),
                    std::move(map),
                    std::move(chosen.classes),
                    std::move(chosen.name),
                    std::move(chosen.cuts),
                    first_view,
                    std::move(chosen.source),
                    {},
                    shares,
                    std::move(person)};
}

Result<BoundedRows> bound_rows(const RowOptions& options, const RunOptions& run, std::size_t reserved,
                               Observer& observer) {
  auto opened = EIGENVEIL_TRY(open_data(options, thread_count(run)));
  return bound_rows(opened, options, run, reserved, observer);
}

Result<BoundedRows> bound_rows(OpenedData& opened, const RowOptions& options, const RunOptions& run,
                               std::size_t reserved, Observer& observer) {
  // The program itself, BLAS buffers, one batch of raw rows; encoders and a batch of their features.
  const std::size_t program = std::size_t{options.pairs ? 512U : 96U} << 20;
  constexpr std::size_t kLeastRows = std::size_t{16} << 20;
  if (run.memory < program + kLeastRows + reserved)
    return usage_error(fmt::format("`memory` {}M is too little: this job needs at least {}M besides the rows",
                                   run.memory >> 20, ((program + kLeastRows + reserved) >> 20) + 1));
  observer.step(options.pairs ? "reading and encoding pairs" : "reading rows");
  if (!opened.source) return internal_error("there is no file to read rows from");
  auto bound = EIGENVEIL_TRY(first_bound(options, opened.map));
  BoundingOptions bounding{.bound = std::move(bound)};
  bounding.missing = options.missing;
  bounding.memory_bytes = run.memory - program - reserved;
  bounding.threads = thread_count(run);
  // Of rows that are no pairs nobody takes batches.
  if (options.person) bounding.person = rule_of(*options.person, run, options.pairs.has_value());
  if (options.person && options.people_elsewhere) bounding.person->share = options.people_elsewhere->share;
  const std::size_t last = opened.source->columns().size() - 1;
  if (opened.pairs && opened.pairs->classed) bounding.class_column = last;
  if (options.class_column) {
    bounding.class_column = last;
    bounding.classes = opened.classes.size();
    bounding.drop_unlisted = options.class_column->drop_unlisted;
  }
  auto rows = BoundedRows::read(*opened.source, opened.map, bounding, [&](double share) { observer.progress(share); });
  if (rows || options.pairs) return rows;
  Error error = rows.error();
  const std::string part = opened.source->part();
  const bool placed = error.message.find(place_of(options)) != std::string::npos && !error.message.starts_with("row ");
  if (error.code == ErrorCode::kBadInput && !placed)
    error.message = (part.empty() ? place_of(options) : part) + ", " + error.message;
  return error;
}

}  // namespace eigenveil
