#include "eigenveil/intake/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <thread>

#include "eigenveil/data/sliced_source.hpp"

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
  return usage_error(fmt::format("--range {}: '{}' is not a number; expected LO:HI or COLUMN=LO:HI", option, text));
}

Result<Range> parse_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string column = equals == std::string::npos ? "" : text.substr(0, equals);
  const std::string bounds = equals == std::string::npos ? text : text.substr(equals + 1);
  const std::size_t colon = bounds.find(':');
  if (colon == std::string::npos)
    return usage_error(fmt::format("--range {}: expected LO:HI or COLUMN=LO:HI, for example 0:255 or age=0:120", text));
  const auto lower = EIGENVEIL_TRY(bound_number(bounds.substr(0, colon), text));
  const auto upper = EIGENVEIL_TRY(bound_number(bounds.substr(colon + 1), text));
  if (lower >= upper) return usage_error(fmt::format("--range {}: the lower bound must be below the upper", text));
  return Range{column, {lower, upper}};
}

Result<Schema> schema_from_ranges(const std::vector<std::string>& texts, const std::vector<std::string>& columns) {
  Schema schema;
  std::vector<Range> ranges;
  for (const std::string& text : texts) {
    auto range = EIGENVEIL_TRY(parse_range(text));
    if (!range.column.empty() && std::find(columns.begin(), columns.end(), range.column) == columns.end())
      return usage_error(fmt::format("--range {}: the data has no column '{}'", text, range.column));
    ranges.push_back(std::move(range));
  }
  for (const std::string& column : columns) {
    const Range* chosen = nullptr;
    for (const Range& range : ranges)
      if (range.column == column || (range.column.empty() && (chosen == nullptr || chosen->column.empty())))
        chosen = &range;
    if (chosen == nullptr)
      return usage_error(fmt::format(
          "column '{}' has no range: add --range '{}=LO:HI' with public bounds, or --range LO:HI for all columns",
          column, column));
    schema.columns.push_back({column, chosen->bounds});
  }
  return schema;
}

Result<ColumnMap> map_for(const RowOptions& options, const std::optional<Schema>& schema,
                          const std::vector<std::string>& columns) {
  const Centering centering = options.center == Center::kNone ? Centering::kNone : Centering::kRange;
  if (schema) return ColumnMap::from_schema(*schema, centering);
  if (!options.ranges.empty()) {
    const auto ranged = EIGENVEIL_TRY(schema_from_ranges(options.ranges, columns));
    return ColumnMap::from_schema(ranged, centering);
  }
  if (!options.row_bound)
    return usage_error(
        "the rows need public bounds: give --range LO:HI (or COLUMN=LO:HI), a --schema, or a --row-bound. They must be "
        "known without looking at the data");
  return ColumnMap::identity(columns);
}

// Keeps the named columns of a schema, in that order.
Status pick_columns(Schema& schema, const RowOptions& options) {
  Schema picked;
  for (const std::string& name : options.schema_columns) {
    const auto found = std::find_if(schema.columns.begin(), schema.columns.end(),
                                    [&](const ColumnSpec& spec) { return spec.name == name; });
    if (found == schema.columns.end())
      return usage_error(
          fmt::format("{}: the schema does not describe the column '{}'", options.schema.value_or("bounds"), name));
    picked.columns.push_back(*found);
  }
  schema = std::move(picked);
  return {};
}

}  // namespace

bool elsewhere(const RowOptions& options) { return options.data.empty() && !options.given; }

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
  // Under private centring the rows are bounded twice; the first time nothing that the ranges allow is cut.
  if (options.row_bound && (options.center != Center::kPrivate || !std::isfinite(largest))) return *options.row_bound;
  return RowBound::of(largest);
}

int thread_count(const RunOptions& run) {
  return run.threads > 0 ? run.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

Result<FileFacts> file_facts(const RowOptions& options) {
  if ((options.schema || options.bounds) && !options.ranges.empty())
    return usage_error("--schema and --range both give bounds: use one of them");
  FileFacts facts{options.source, options.bounds};
  facts.source.bad_rows = options.missing == MissingPolicy::kError ? BadRows::kError : BadRows::kMissing;
  if (options.schema) {
    facts.schema = EIGENVEIL_TRY(read_schema(*options.schema));
  }
  if (!facts.schema) return facts;
  if (!options.source.columns.empty())
    return usage_error("--schema and --columns both choose columns: list the columns in the schema");
  facts.source = EIGENVEIL_TRY(options_for(*facts.schema, facts.source));
  return facts;
}

namespace {

// What fits no query over more than one view: pairs have their own bound, names and missing values.
Result<OpenedData> opened_pairs(const RowOptions& options, int threads) {
  auto opened = EIGENVEIL_TRY(open_pairs(*options.pairs, options.source.share, threads));
  std::vector<std::string> names = opened.source->columns();
  if (opened.inputs->classed) names.pop_back();
  return OpenedData{std::move(opened.source), ColumnMap::identity(names), opened.inputs->classes, options.source,
                    std::move(opened.inputs)};
}

}  // namespace

Result<OpenedData> open_data(const RowOptions& options, int threads) {
  if (options.pairs) return opened_pairs(options, threads);
  auto facts = EIGENVEIL_TRY(file_facts(options));
  SourceOptions source_options = std::move(facts.source);
  std::optional<Schema> schema = std::move(facts.schema);
  if (schema && !options.schema_columns.empty()) {
    EIGENVEIL_TRY(pick_columns(*schema, options));
    source_options.columns = schema->names();
    source_options.categories = schema->categories();
  }
  std::vector<std::string> classes;
  if (options.class_column) {
    auto classed = EIGENVEIL_TRY(with_class_column(options, source_options, schema, *options.class_column));
    source_options = std::move(classed.source);
    schema = std::move(classed.schema);
    classes = std::move(classed.classes);
  }
  auto source = EIGENVEIL_TRY(elsewhere(options) ? Result<std::unique_ptr<RowSource>>(nullptr)
                              : options.given    ? options.given->take(source_options)
                                                 : open_source(options.data, source_options));
  // Of several images one can be replaced and the others still say how large they are.
  if (source && !options.given && source_options.fields == 0 && source_options.share.count == 1 &&
      std::filesystem::is_directory(options.data) && source->rows_announced() == std::size_t{1})
    return usage_error(
        fmt::format("{}: one image alone does not say how large images are: state its number of values with --fields N",
                    options.data));
  const auto names = EIGENVEIL_TRY(elsewhere(options) ? column_names(options, {}, source_options.columns)
                                                      : Result<std::vector<std::string>>(source->columns()));
  std::vector<std::string> features = names;
  if (options.class_column) features.pop_back();
  auto map = EIGENVEIL_TRY(map_for(options, schema, features));
  if (source && options.class_column && !options.class_column->cuts.empty())
    source = std::make_unique<SlicedSource>(std::move(source), options.class_column->cuts);
  return OpenedData{std::move(source), std::move(map), std::move(classes), std::move(source_options)};
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
    return usage_error(fmt::format("--memory {}M is too little: this job needs at least {}M besides the rows",
                                   run.memory >> 20, ((program + kLeastRows + reserved) >> 20) + 1));
  observer.step(options.pairs ? "reading and encoding pairs" : "reading rows");
  if (!opened.source) return internal_error("there is no file to read rows from");
  auto bound = EIGENVEIL_TRY(first_bound(options, opened.map));
  BoundingOptions bounding{.bound = std::move(bound)};
  bounding.missing = options.missing;
  bounding.memory_bytes = run.memory - program - reserved;
  bounding.threads = thread_count(run);
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
