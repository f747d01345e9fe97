// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "eigenveil/data/table.hpp"
#include "eigenveil/intake/rows.hpp"

namespace eigenveil {

/// The rows that the options speak of, before columns are chosen: a file, which is opened here and nowhere else; rows
/// that the caller gave; or rows that others hold, whose columns are what they are called.
class RowsAtHand {
 public:
  static Result<RowsAtHand> open(const RowOptions& rows, const SourceOptions& source);

  /// The names of the columns that a list of names, positions and ranges means.
  Result<std::vector<std::string>> names(const std::vector<std::string>& columns) const;
  /// None if others hold them. Called once.
  Result<std::unique_ptr<RowSource>> take(const SourceOptions& options);

 private:
  struct Elsewhere {};
  using Holder = std::variant<Elsewhere, std::shared_ptr<GivenRows>, Table>;
  explicit RowsAtHand(Holder holder) : holder_(std::move(holder)) {}
  Holder holder_;
};

}  // namespace eigenveil
