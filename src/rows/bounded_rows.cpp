// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/bounded_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "eigenveil/base/parallel.hpp"

namespace eigenveil {
namespace {

// The first raw column with a NaN or an infinity that no range clamps; `columns` if there is none.
std::size_t first_not_finite(const double* raw, const double* features, const ColumnMap& map) {
  std::size_t feature = 0;
  for (std::size_t column = 0; column < map.raw_columns(); ++column) {
    const auto* categorical = std::get_if<CategoricalColumn>(&map.specs()[column].kind);
    const std::size_t width = categorical != nullptr ? categorical->values.size() : 1;
    if (std::isnan(raw[column])) return column;
    for (std::size_t j = 0; j < width; ++j)
      if (!std::isfinite(features[feature + j])) return column;
    feature += width;
  }
  return map.raw_columns();
}

Error missing_error(const ColumnMap& map, std::size_t row, std::size_t column) {
  return bad_input(fmt::format(
      "row {}, column '{}': the value is missing, NaN or infinite; fill it in, or let `missing` zero-row count such "
      "rows as zero",
      row + 1, map.specs()[column].name));
}

// The class of a row, -1 if it has none and counts as zero.
Result<std::int32_t> class_of(double value, const BoundingOptions& options, std::size_t row,
                              const std::string& column) {
  const auto refused = [&](const char* why) {
    return bad_input(fmt::format("row {}, column '{}': {}", row + 1, column, why));
  };
  if (std::isnan(value)) {
    if (options.missing == MissingPolicy::kZeroRow) return -1;
    return refused("the class is missing; fill it in, or let `missing` zero-row count such rows as zero");
  }
  if (options.classes == 0 || value < static_cast<double>(options.classes)) return static_cast<std::int32_t>(value);
  if (options.drop_unlisted) return -1;
  return refused("the label is not among the classes; list it, or let `unlisted` drop count such rows as zero");
}

// One batch on its way from raw values to the lattice; rows are independent, so threads share it out.
struct BatchWork {
  const ColumnMap& map;
  const Lattice& lattice;
  std::size_t raw_width;
  std::vector<std::int32_t> bounded;
  std::vector<RowFate> fates;

  void run(const RawBatch& batch, int threads) {
    const std::size_t d = map.features();
    bounded.resize(batch.rows * d);
    fates.resize(batch.rows);
    constexpr std::size_t kRowsAtOnce = 64;
    Tickets pieces((batch.rows + kRowsAtOnce - 1) / kRowsAtOnce);
    on_threads(threads, [&] {
      std::vector<double> features(d);
      while (const auto piece = pieces.next())
        for (std::size_t i = *piece * kRowsAtOnce; i < std::min((*piece + 1) * kRowsAtOnce, batch.rows); ++i) {
          map.apply(&batch.values[i * raw_width], features.data());
          fates[i] = bound_row(features.data(), d, lattice, &bounded[i * d]);
        }
    });
  }
};

}  // namespace

Result<BoundedRows> BoundedRows::read(RowSource& source, const ColumnMap& map, const BoundingOptions& options,
                                      const Progress& progress) {
  const std::size_t d = map.features();
  if (d == 0) return bad_input("the data has no columns to work on");
  if (options.bits < 4 || options.bits > 20)
    return usage_error(fmt::format("the lattice takes 4 to 20 bits, but got {}", options.bits));

  const Lattice lattice{options.bound.value(), options.bits};
  BoundedRows result(ChunkStore(d, {options.memory_bytes, options.spill_folder, options.chunk_rows}), lattice,
                     options.threads);
  BatchWork work{map, lattice, source.columns().size(), {}, {}};
  const std::size_t batch_rows = std::clamp<std::size_t>((std::size_t{8} << 20) / (8 * (d + work.raw_width)), 1, 8192);
  RawBatch batch;
  std::vector<double> features(d);
  for (;;) {
    EIGENVEIL_TRY(source.next(batch, batch_rows));
    if (batch.rows == 0) break;
    work.run(batch, options.threads);
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const double* raw = &batch.values[i * work.raw_width];
      if (work.fates[i] == RowFate::kNotFinite && options.missing == MissingPolicy::kError) {
        map.apply(raw, features.data());
        return missing_error(map, batch.first_row + i, first_not_finite(raw, features.data(), map));
      }
      result.diagnostics_.shortened += work.fates[i] == RowFate::kShortened ? 1 : 0;
      bool zero = work.fates[i] == RowFate::kNotFinite;
      if (options.class_column) {
        const auto found = EIGENVEIL_TRY(class_of(raw[*options.class_column], options, batch.first_row + i,
                                                  source.columns()[*options.class_column]));
        result.classes_.push_back(found);
        zero = zero || found < 0;
      }
      if (!zero) continue;
      result.zeroed_.push_back(result.rows() + i);
      std::fill_n(&work.bounded[i * d], d, 0);
    }
    EIGENVEIL_TRY(result.store_.append(work.bounded.data(), batch.rows));
    if (progress) progress(source.progress());
  }
  result.classed_ = options.class_column.has_value();
  result.diagnostics_.rows = result.rows();
  result.diagnostics_.zeroed = result.zeroed_.size();
  return result;
}

template <class Map>
Status BoundedRows::replace(RowBound radius, const Map& map) {
  const std::size_t d = columns();
  const Lattice after{radius.value(), lattice_.bits};
  Status failure;
  std::mutex failing;
  Tickets chunks(store_.chunks());
  on_threads(threads_, [&] {
    std::vector<std::int32_t> buffer;
    std::vector<std::int32_t> moved;
    std::vector<double> features;
    while (const auto chunk = chunks.next()) {
      const auto rows = store_.read(*chunk, buffer);
      Status done = rows ? Status() : Status(rows.error());
      if (rows) {
        const std::size_t count = store_.rows_in(*chunk);
        features.resize(count * d);
        moved.resize(count * d);
        map(*rows, count, features.data());
        for (std::size_t i = 0; i < count; ++i) {
          if (std::binary_search(zeroed_.begin(), zeroed_.end(), *chunk * store_.chunk_rows() + i))
            std::fill_n(&features[i * d], d, 0.0);
          bound_row(&features[i * d], d, after, &moved[i * d]);
        }
        done = store_.write(*chunk, moved.data());
      }
      if (!done) {
        const std::lock_guard lock(failing);
        failure = done;
      }
    }
  });
  if (failure.ok()) lattice_ = after;
  return failure;
}

Status BoundedRows::recenter(const Vector& mean, RowBound radius) {
  const std::size_t d = columns();
  if (static_cast<std::size_t>(mean.size()) != d || !mean.allFinite())
    return internal_error("the mean to subtract does not fit the rows");
  // a - mean, with a = u * unit
  return replace(radius, [&, unit = lattice_.unit()](const std::int32_t* rows, std::size_t count, double* out) {
    for (std::size_t i = 0; i < count * d; ++i) out[i] = rows[i] * unit - mean[static_cast<Eigen::Index>(i % d)];
  });
}

Status BoundedRows::remap(const LinearMap& M, RowBound radius) {
  if (M.rows() != columns() || M.columns() != columns()) return internal_error("the map does not fit the rows");
  // M^T a, with a = u * unit
  return replace(radius, [&, unit = lattice_.unit()](const std::int32_t* rows, std::size_t count, double* out) {
    const std::vector<double> u(rows, rows + count * columns());
    M.product(u.data(), count, out);
    for (std::size_t i = 0; i < u.size(); ++i) out[i] *= M.step() * unit;
  });
}

}  // namespace eigenveil
