// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/federation/site_config.hpp"

namespace eigenveil::federation {

/// How a site reads its rows for a study, by its own file.
struct OwnRows {
  RowOptions options;
  std::uint32_t features;  ///< numbers of one row
};

/// Of a proposal only names are taken: of columns, of the class column, the way of centring and the row bound. Bounds,
/// values, classes, missing rule, radius and bits are the site's, and what the proposal says of them must be the same
/// bytes: there is no field of it that could reach a row and is not compared.
Result<OwnRows> own_rows(const wire::v2::Rows& proposed, const SiteConfig& config);

}  // namespace eigenveil::federation
