// SPDX-License-Identifier: Apache-2.0
#include "own_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/chain.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

// The site's own columns by the names that the study chose.
Result<Schema> features_named(const wire::v2::Rows& proposed, const SiteConfig& config) {
  Schema features = config.schema;
  features.columns.clear();
  std::set<std::string> chosen;
  for (const auto& column : proposed.columns()) {
    const auto own = std::find_if(config.schema.columns.begin(), config.schema.columns.end(),
                                  [&](const ColumnSpec& spec) { return spec.name == column.name(); });
    if (own == config.schema.columns.end())
      return bad_input(
          fmt::format("it uses the column {}, which this site's schema does not have", quote(column.name())));
    if (!chosen.insert(column.name()).second)
      return bad_input(fmt::format("it uses the column {} twice", quote(column.name())));
    if (!config.columns.empty() &&
        std::find(config.columns.begin(), config.columns.end(), column.name()) == config.columns.end())
      return bad_input(fmt::format("it uses the column {}, which this site does not offer", quote(column.name())));
    features.columns.push_back(*own);
  }
  if (!config.columns.empty()) return features;
  for (const ColumnSpec& own : config.schema.columns)
    if (!chosen.contains(own.name) && !config.classes.contains(own.name))
      return bad_input(fmt::format("it leaves out the column {}, and this site does not offer a choice of columns",
                                   quote(own.name)));
  return features;
}

Result<ClassColumn> class_column_named(const std::string& name, const SiteConfig& config) {
  const auto rule = config.classes.find(name);
  if (rule == config.classes.end())
    return bad_input(fmt::format("it sorts rows by the column {}, which is no class column of this site", quote(name)));
  // Every number is in some slice: there is nothing to drop.
  return ClassColumn{name, rule->second.labels, config.drop_unlisted && rule->second.cuts.empty(), rule->second.cuts};
}

bool same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return canonical_bytes(a) == canonical_bytes(b);
}

const char* missing_word(const wire::v2::Rows& rows) {
  return rows.missing() == wire::v2::Rows::MISSING_VALUE      ? "value"
         : rows.missing() == wire::v2::Rows::MISSING_CATEGORY ? "category"
         : rows.zero_missing()                                ? "zero-row"
                                                              : "error";
}

// Where a proposal's rows differ from the site's own, in words.
std::string difference(const wire::v2::Rows& proposed, const wire::v2::Rows& own) {
  for (int i = 0; i < own.columns_size() && i < proposed.columns_size(); ++i)
    if (!same(own.columns(i), proposed.columns(i)))
      return fmt::format("its bounds or values of column {} differ from this site's schema",
                         quote(own.columns(i).name()));
  if (own.columns_size() != proposed.columns_size()) return "its class column is among its features";
  if (own.zero_missing() != proposed.zero_missing() || own.missing() != proposed.missing())
    return fmt::format("its rule for missing values is not this site's: use `missing` {}", missing_word(own));
  if (own.class_column().drop_unlisted() != proposed.class_column().drop_unlisted())
    return fmt::format("its rule for rows of no listed class is not this site's: use `unlisted` {}",
                       own.class_column().drop_unlisted() ? "drop" : "error");
  if (!same(own.class_column(), proposed.class_column()))
    return fmt::format("its classes or cuts of column {} are not this site's", quote(own.class_column().column()));
  if (own.has_row_bound() != proposed.has_row_bound() || own.row_bound() != proposed.row_bound())
    return "its row bound is not this site's";
  return "its rows are put on another lattice than this site's (radius or bits)";
}

}  // namespace

Result<OwnRows> own_rows(const wire::v2::Rows& proposed, const SiteConfig& config) {
  if (static_cast<std::uint64_t>(proposed.columns_size()) > config.limits.columns)
    return bad_input(fmt::format("it has {} columns, above this site's limit of {}", proposed.columns_size(),
                                 config.limits.columns));
  if (proposed.columns_size() == 0) return bad_input("it names no columns");
  RowOptions rows;
  auto features = EIGENVEIL_TRY(features_named(proposed, config));
  rows.bounds = std::move(features);
  const auto center = center_from(proposed);
  if (!center) return bad_input("its way of centring is not known");
  rows.center = *center;
  rows.missing = config.missing;
  rows.row_bound = config.row_bound;
  if (!config.row_bound && proposed.has_row_bound()) {
    const auto bound = RowBound::of(proposed.row_bound());
    if (!bound) return bad_input("its row bound is none");
    rows.row_bound = *bound;
  }
  if (proposed.has_class_column()) {
    rows.class_column = EIGENVEIL_TRY(class_column_named(proposed.class_column().column(), config));
  }
  rows.response = response_from(proposed);
  if (rows.response && rows.response->column != proposed.columns(proposed.columns_size() - 1).name())
    return bad_input("its response is not the last of its columns");
  rows.source = config.source;

  // No file yet: columns and classes alone.
  const auto opened = EIGENVEIL_TRY(open_data(rows));
  const auto bound = EIGENVEIL_TRY(first_bound(rows, opened.map));
  wire::v2::Rows own = to_wire(rows, opened);
  own.set_radius(bound.value());
  own.set_bits(static_cast<std::uint32_t>(BoundingOptions{bound}.bits));
  if (!same(own, proposed)) return bad_input(difference(proposed, own));
  if (opened.map.features() > config.limits.columns)
    return bad_input(fmt::format("a row has {} features, above this site's limit of {}", opened.map.features(),
                                 config.limits.columns));
  rows.data = config.data;
  return OwnRows{std::move(rows), static_cast<std::uint32_t>(opened.map.features())};
}

}  // namespace eigenveil::federation
