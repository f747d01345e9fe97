// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/wire/convert.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace eigenveil {
namespace {

constexpr std::size_t kMostColumns = 1000000;
constexpr std::size_t kMostEntries = std::size_t{1} << 28;

Error malformed(const std::string& what) { return bad_input("a malformed message: " + what); }

template <class Numbers>
Result<std::vector<double>> grid_from(const Numbers& numbers) {
  std::vector<double> grid(numbers.begin(), numbers.end());
  if (grid.empty() || grid.size() > 100000) return malformed("a grid of no points, or too many");
  for (std::size_t i = 0; i < grid.size(); ++i)
    if (!std::isfinite(grid[i]) || (i > 0 && !(grid[i - 1] < grid[i]))) return malformed("a grid that does not ascend");
  return grid;
}

}  // namespace

wire::v2::Directions to_wire(const Directions& X) {
  wire::v2::Directions message;
  message.set_rows(static_cast<std::uint32_t>(X.rows()));
  message.set_columns(static_cast<std::uint32_t>(X.columns()));
  const Matrix& scaled = X.scaled();
  message.mutable_scaled()->Reserve(static_cast<int>(scaled.size()));
  for (Eigen::Index i = 0; i < scaled.size(); ++i) message.add_scaled(static_cast<std::int32_t>(scaled.data()[i]));
  return message;
}

Result<Directions> from_wire(const wire::v2::Directions& message) {
  const std::size_t size = std::size_t{message.rows()} * message.columns();
  if (size == 0 || size > kMostEntries || size != static_cast<std::size_t>(message.scaled_size()))
    return malformed("directions whose size is not what they say");
  // X^T X is formed to check them: a short and wide X of zeros would ask for all the memory there is.
  if (message.columns() > message.rows()) return malformed("more directions than dimensions");
  Matrix X(message.rows(), message.columns());
  for (Eigen::Index i = 0; i < X.size(); ++i)
    X.data()[i] = std::ldexp(message.scaled(static_cast<int>(i)), -Directions::kBits);
  auto directions = Directions::quantise(X);
  if (!directions) return malformed(directions.error().message);
  return directions;
}

wire::v2::LinearMap to_wire(const LinearMap& M) {
  wire::v2::LinearMap message;
  message.set_rows(static_cast<std::uint32_t>(M.rows()));
  message.set_columns(static_cast<std::uint32_t>(M.columns()));
  const Matrix values = M.matrix();
  *message.mutable_values() = {values.data(), values.data() + values.size()};
  return message;
}

Result<LinearMap> from_wire(const wire::v2::LinearMap& message) {
  const std::size_t size = std::size_t{message.rows()} * message.columns();
  if (size == 0 || size > kMostEntries || size != static_cast<std::size_t>(message.values_size()))
    return malformed("a linear map whose size is not what it says");
  auto map = LinearMap::quantise(Eigen::Map<const Matrix>(message.values().data(), message.rows(), message.columns()));
  if (!map) return malformed(map.error().message);
  return map;
}

namespace {

// Each query has its message: one without does not compile, and a message that `from_wire` forgets does not either.
void fill(const Gram& /*query*/, wire::v2::SumQuery& to) { to.mutable_gram(); }
void fill(const Apply& query, wire::v2::SumQuery& to) { *to.mutable_apply()->mutable_x() = to_wire(query.X); }
void fill(const ClassSums& query, wire::v2::SumQuery& to) {
  to.mutable_class_sums()->set_classes(static_cast<std::uint32_t>(query.classes));
}
void fill(const ClassCounts& query, wire::v2::SumQuery& to) {
  to.mutable_class_counts()->set_classes(static_cast<std::uint32_t>(query.classes));
}
void fill(const SquaredNorms& /*query*/, wire::v2::SumQuery& to) { to.mutable_squared_norms(); }
void fill(const ProjectedGram& query, wire::v2::SumQuery& to) {
  *to.mutable_projected_gram()->mutable_x() = to_wire(query.X);
  to.mutable_projected_gram()->set_radius(query.radius);
}
void fill(const SoftmaxGradient& query, wire::v2::SumQuery& to) {
  *to.mutable_softmax_gradient()->mutable_w() = to_wire(query.W);
  to.mutable_softmax_gradient()->set_clip(query.clip);
}

void fill(const ScoreCounts& query, wire::v2::SumQuery& to) {
  auto& message = *to.mutable_score_counts();
  *message.mutable_x() = to_wire(query.X);
  *message.mutable_first() = {query.first.begin(), query.first.end()};
  *message.mutable_second() = {query.second.begin(), query.second.end()};
  message.set_classes(static_cast<std::uint32_t>(query.classes));
}

}  // namespace

wire::v2::SumQuery to_wire(const SumQuery& query) {
  wire::v2::SumQuery message;
  std::visit([&](const auto& q) { fill(q, message); }, query);
  return message;
}

Result<SumQuery> from_wire(const wire::v2::SumQuery& message) {
  using Kind = wire::v2::SumQuery::KindCase;
  switch (message.kind_case()) {
    case Kind::kGram:
      return SumQuery(Gram{});
    case Kind::kApply: {
      auto X = EIGENVEIL_TRY(from_wire(message.apply().x()));
      return SumQuery(Apply{std::move(X)});
    }
    case Kind::kClassSums:
      if (message.class_sums().classes() < 1 || message.class_sums().classes() > kMostColumns) break;
      return SumQuery(ClassSums{message.class_sums().classes()});
    case Kind::kClassCounts:
      if (message.class_counts().classes() < 1 || message.class_counts().classes() > kMostColumns) break;
      return SumQuery(ClassCounts{message.class_counts().classes()});
    case Kind::kSquaredNorms:
      return SumQuery(SquaredNorms{});
    case Kind::kProjectedGram: {
      auto X = EIGENVEIL_TRY(from_wire(message.projected_gram().x()));
      const double radius = message.projected_gram().radius();
      if (!(radius > 0) || !std::isfinite(radius)) break;
      return SumQuery(ProjectedGram{std::move(X), radius});
    }
    case Kind::kSoftmaxGradient: {
      auto W = EIGENVEIL_TRY(from_wire(message.softmax_gradient().w()));
      const double clip = message.softmax_gradient().clip();
      if (!(clip > 0) || !std::isfinite(clip)) break;
      return SumQuery(SoftmaxGradient{std::move(W), clip});
    }
    case Kind::kScoreCounts: {
      const auto& from = message.score_counts();
      auto X = EIGENVEIL_TRY(from_wire(from.x()));
      auto first = EIGENVEIL_TRY(grid_from(from.first()));
      auto second = EIGENVEIL_TRY(grid_from(from.second()));
      if (from.classes() < 1 || from.classes() > kMostColumns) break;
      return SumQuery(ScoreCounts{std::move(X), std::move(first), std::move(second), from.classes()});
    }
    case Kind::KIND_NOT_SET:
      break;
  }
  return malformed("a sum of no known kind or size");
}

wire::v2::NormExceedance to_wire(const NormExceedance& query) {
  wire::v2::NormExceedance message;
  *message.mutable_grid() = {query.grid.begin(), query.grid.end()};
  if (query.X) *message.mutable_x() = to_wire(*query.X);
  return message;
}

Result<NormExceedance> from_wire(const wire::v2::NormExceedance& message) {
  auto grid = EIGENVEIL_TRY(grid_from(message.grid()));
  NormExceedance query{std::move(grid), {}};
  if (message.has_x()) {
    auto X = EIGENVEIL_TRY(from_wire(message.x()));
    query.X = std::move(X);
  }
  return query;
}

wire::v2::FilteredApply to_wire(const FilteredApply& query) {
  wire::v2::FilteredApply message;
  *message.mutable_x() = to_wire(query.X);
  *message.mutable_grid() = {query.grid.begin(), query.grid.end()};
  message.set_drop(query.mode == FilterMode::kDrop);
  return message;
}

Result<FilteredApply> from_wire(const wire::v2::FilteredApply& message) {
  auto X = EIGENVEIL_TRY(from_wire(message.x()));
  auto grid = EIGENVEIL_TRY(grid_from(message.grid()));
  return FilteredApply{std::move(X), std::move(grid), message.drop() ? FilterMode::kDrop : FilterMode::kShrink};
}

wire::v2::Recenter to_wire(const Vector& mean, RowBound radius) {
  wire::v2::Recenter message;
  *message.mutable_mean() = {mean.begin(), mean.end()};
  message.set_radius(radius.value());
  return message;
}

wire::v2::Recenter to_wire(const LinearMap& M, RowBound radius) {
  wire::v2::Recenter message;
  *message.mutable_map() = to_wire(M);
  message.set_radius(radius.value());
  return message;
}

Status recenter(BoundedRows& rows, const Recentring& to) {
  return to.map ? rows.remap(*to.map, to.radius) : rows.recenter(to.mean, to.radius);
}

Result<Recentring> from_wire(const wire::v2::Recenter& message) {
  if (message.has_map()) {
    auto map = EIGENVEIL_TRY(from_wire(message.map()));
    const auto bound = RowBound::of(message.radius());
    if (message.mean_size() > 0 || !bound) return malformed("a map with a mean, or a row bound that is not finite");
    return Recentring{{}, *bound, std::move(map)};
  }
  if (message.mean_size() == 0) return malformed("a mean of no columns");
  Vector mean(message.mean_size());
  for (int i = 0; i < message.mean_size(); ++i) mean[i] = message.mean(i);
  const auto radius = RowBound::of(message.radius());
  if (!mean.allFinite() || !radius) return malformed("a mean or a row bound that is not finite");
  return Recentring{std::move(mean), *radius, {}};
}

namespace {

wire::v2::Rows::Center to_wire(Center center) {
  switch (center) {
    case Center::kNone:
      return wire::v2::Rows::CENTER_NONE;
    case Center::kPrivate:
      return wire::v2::Rows::CENTER_PRIVATE;
    case Center::kMean:
      return wire::v2::Rows::CENTER_MEAN;
    case Center::kRange:
    case Center::kUsual:
      break;
  }
  return wire::v2::Rows::CENTER_RANGE;
}

}  // namespace

wire::v2::Rows to_wire(const RowOptions& options, const OpenedData& opened) {
  wire::v2::Rows message;
  for (const ColumnSpec& spec : opened.map.specs()) {
    auto* to = message.add_columns();
    to->set_name(spec.name);
    if (const auto* numeric = std::get_if<NumericColumn>(&spec.kind)) {
      to->set_bounded(std::isfinite(numeric->lower) && std::isfinite(numeric->upper));
      if (numeric->missing) to->set_missing_value(*numeric->missing);
      if (!to->bounded()) continue;
      to->set_lower(numeric->lower);
      to->set_upper(numeric->upper);
    } else {
      const auto& categorical = std::get<CategoricalColumn>(spec.kind);
      for (const std::string& value : categorical.values) to->add_values(value);
      if (categorical.other) to->set_other(static_cast<std::uint32_t>(*categorical.other));
      if (categorical.missing) to->set_missing_index(static_cast<std::uint32_t>(*categorical.missing));
      if (categorical.weight != 1) to->set_weight(categorical.weight);
    }
  }
  if (options.row_bound) message.set_row_bound(options.row_bound->value());
  message.set_center(to_wire(options.center));
  message.set_zero_missing(options.missing == MissingPolicy::kZeroRow);
  message.set_missing(options.missing == MissingPolicy::kValue      ? wire::v2::Rows::MISSING_VALUE
                      : options.missing == MissingPolicy::kCategory ? wire::v2::Rows::MISSING_CATEGORY
                                                                    : wire::v2::Rows::MISSING_ROW);
  if (options.class_column) {
    auto* to = message.mutable_class_column();
    to->set_column(options.class_column->column);
    if (opened.cuts.empty())
      for (const std::string& label : opened.classes) to->add_classes(label);
    to->set_drop_unlisted(options.class_column->drop_unlisted);
    *to->mutable_cuts() = {opened.cuts.begin(), opened.cuts.end()};
  }
  if (opened.shares) {
    message.mutable_response()->set_column(opened.map.specs().back().name);
    message.mutable_response()->set_weight(opened.shares->weight);
    message.mutable_response()->set_constant(opened.shares->constant);
  }
  return message;
}

std::optional<Response> response_from(const wire::v2::Rows& message) {
  if (!message.has_response()) return std::nullopt;
  const auto& from = message.response();
  return Response{from.column(), ResponseShares{from.weight(), from.constant()}};
}

Result<Center> center_from(const wire::v2::Rows& message) {
  switch (message.center()) {
    case wire::v2::Rows::CENTER_NONE:
      return Center::kNone;
    case wire::v2::Rows::CENTER_RANGE:
      return Center::kRange;
    case wire::v2::Rows::CENTER_PRIVATE:
      return Center::kPrivate;
    case wire::v2::Rows::CENTER_MEAN:
      return Center::kMean;
    default:
      return malformed("a way of centring that is not known");
  }
}

namespace {

/// None: a column without bounds.
Result<std::optional<ColumnSpec>> from_wire(const wire::v2::Column& column) {
  if (column.name().empty()) return malformed("a column without a name");
  if (column.bounded()) {
    if (!std::isfinite(column.lower()) || !std::isfinite(column.upper()) || !(column.lower() < column.upper()))
      return malformed(fmt::format("the bounds of column '{}'", column.name()));
    NumericColumn numeric{column.lower(), column.upper()};
    if (column.has_missing_value()) numeric.missing = column.missing_value();
    if (numeric.missing && !(*numeric.missing >= numeric.lower && *numeric.missing <= numeric.upper))
      return malformed(fmt::format("what a missing value of column '{}' counts as", column.name()));
    return std::optional(ColumnSpec{column.name(), numeric});
  }
  if (column.values_size() == 0) return std::optional<ColumnSpec>();
  CategoricalColumn categorical{{column.values().begin(), column.values().end()}};
  if (column.has_other()) categorical.other = column.other();
  if (column.has_missing_index()) categorical.missing = column.missing_index();
  if (column.has_weight()) categorical.weight = column.weight();
  if ((categorical.other && *categorical.other >= categorical.values.size()) ||
      (categorical.missing && *categorical.missing > categorical.values.size()) ||
      !(categorical.weight > 0 && std::isfinite(categorical.weight)))
    return malformed(fmt::format("the categories of column '{}'", column.name()));
  return std::optional(ColumnSpec{column.name(), std::move(categorical)});
}

Result<MissingPolicy> missing_from(const wire::v2::Rows& message) {
  switch (message.missing()) {
    case wire::v2::Rows::MISSING_ROW:
      return message.zero_missing() ? MissingPolicy::kZeroRow : MissingPolicy::kError;
    case wire::v2::Rows::MISSING_VALUE:
      return MissingPolicy::kValue;
    case wire::v2::Rows::MISSING_CATEGORY:
      return MissingPolicy::kCategory;
    default:
      return malformed("a rule for missing values that is not known");
  }
}

Result<ClassColumn> from_wire(const wire::v2::ClassColumn& message) {
  if (message.column().empty()) return malformed("a class column without a name");
  if (message.cuts_size() > 0)
    if (const auto cuts = grid_from(message.cuts()); !cuts) return malformed("cuts that do not ascend");
  return ClassColumn{message.column(),
                     {message.classes().begin(), message.classes().end()},
                     message.drop_unlisted(),
                     {message.cuts().begin(), message.cuts().end()}};
}

}  // namespace

Result<RowOptions> from_wire(const wire::v2::Rows& message) {
  RowOptions options;
  const std::size_t columns = message.columns_size();
  if (columns == 0 || columns > kMostColumns) return malformed("rows of no columns, or too many");
  Schema schema;
  for (const auto& column : message.columns()) {
    auto spec = EIGENVEIL_TRY(from_wire(column));
    if (spec)
      schema.columns.push_back(std::move(*spec));
    else
      options.source.columns.push_back(column.name());
  }
  const std::size_t bounded = schema.columns.size();
  if (bounded != 0 && bounded != columns) return malformed("some columns have bounds and some have none");
  if (bounded != 0) options.bounds = std::move(schema);
  if (message.has_row_bound()) {
    const auto bound = RowBound::of(message.row_bound());
    if (!bound) return malformed("the row bound");
    options.row_bound = *bound;
  }
  options.center = EIGENVEIL_TRY(center_from(message));
  options.missing = EIGENVEIL_TRY(missing_from(message));
  if (message.has_class_column()) options.class_column = EIGENVEIL_TRY(from_wire(message.class_column()));
  options.response = response_from(message);
  return options;
}

// This machine is little-endian, as all that Debian runs on here.
void append_integers(const Int128* first, std::size_t count, bool narrow, std::string& bytes) {
  const std::size_t before = bytes.size();
  const std::size_t each = integer_bytes(narrow);
  bytes.resize(before + each * count);
  char* to = bytes.data() + before;
  if (narrow)
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + each * i, first + i, each);
  else
    std::memcpy(to, first, each * count);
}

void add_integers(const std::string& bytes, bool narrow, Int128* total) {
  const std::size_t each = integer_bytes(narrow);
  for (std::size_t i = 0; i < bytes.size() / each; ++i) {
    UInt128 value = 0;
    std::memcpy(&value, bytes.data() + each * i, each);
    total[i] = static_cast<Int128>(static_cast<UInt128>(total[i]) + value);
    if (narrow) total[i] = narrowed(total[i]);
  }
}

}  // namespace eigenveil
