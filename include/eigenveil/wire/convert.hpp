// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/intake/rows.hpp"
#include "eigenveil/query/filtered.hpp"
#include "wire.pb.h"

namespace eigenveil {

// The library's own types to messages and back. What comes from outside is checked here: no message, however it was
// made, gives directions that are not orthonormal, a grid that does not ascend, or a number that is not finite.

wire::v2::Directions to_wire(const Directions& X);
wire::v2::LinearMap to_wire(const LinearMap& M);
wire::v2::SumQuery to_wire(const SumQuery& query);
wire::v2::NormExceedance to_wire(const NormExceedance& query);
wire::v2::FilteredApply to_wire(const FilteredApply& query);
wire::v2::Recenter to_wire(const Vector& mean, RowBound radius);
wire::v2::Recenter to_wire(const LinearMap& M, RowBound radius);
/// How rows are read: the public options, and the columns and classes that they came to.
wire::v2::Rows to_wire(const RowOptions& options, const OpenedData& opened);

Result<Directions> from_wire(const wire::v2::Directions& message);
Result<LinearMap> from_wire(const wire::v2::LinearMap& message);
Result<SumQuery> from_wire(const wire::v2::SumQuery& message);
Result<NormExceedance> from_wire(const wire::v2::NormExceedance& message);
Result<FilteredApply> from_wire(const wire::v2::FilteredApply& message);
struct Recentring {
  Vector mean;
  RowBound radius;
  std::optional<LinearMap> map;  ///< instead of a mean
};
/// Recentres or remaps the rows, whichever it says.
Status recenter(BoundedRows& rows, const Recentring& to);
Result<Recentring> from_wire(const wire::v2::Recenter& message);
/// Refuses a way that is not known.
Result<Center> center_from(const wire::v2::Rows& message);
/// Not checked: `open_data` does that.
std::optional<Response> response_from(const wire::v2::Rows& message);
/// The options that read such rows from a file of one's own.
Result<RowOptions> from_wire(const wire::v2::Rows& message);

/// 16 bytes per integer, or the low 8 of them (`narrow`), little-endian, as parts of an answer carry them.
constexpr std::size_t integer_bytes(bool narrow) { return narrow ? 8 : 16; }
void append_integers(const Int128* first, std::size_t count, bool narrow, std::string& bytes);
/// Adds the integers to `total`, modulo 2^128; if they are narrow modulo 2^64, as a number from -2^63 to 2^63 - 1.
void add_integers(const std::string& bytes, bool narrow, Int128* total);
inline Int128 narrowed(Int128 x) { return static_cast<std::int64_t>(x); }

}  // namespace eigenveil
