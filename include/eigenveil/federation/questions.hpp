// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "eigenveil/federation/script.hpp"

namespace eigenveil::federation {

/// What an answer of a plan asks, and how the rows move after it.
struct Question {
  wire::v2::Kind kind;
  std::uint32_t classes = 0;
  wire::v2::Kind then = wire::v2::Kind::KIND_UNKNOWN;  ///< RECENTER or MAP: the rows are moved by what was learnt
};

/// Knows the question behind a label. `after` is the kind before it; `classes` those of the class column.
using Questions =
    std::function<std::optional<Question>(const std::string& label, wire::v2::Kind after, std::uint32_t classes)>;

/// The labels of the estimators that run over sites: pca, covariance, cca, fda, sir.
Questions questions_of_estimators();

/// Searches over sites count rows by cell with Gaussian noise, whatever the plan of one owner would do.
PrivacyPlan for_sites(PrivacyPlan plan);

constexpr std::uint32_t kMostGrid = 512;
constexpr const char* kRecentre = "recentre";
constexpr const char* kMapRows = "map rows";

/// Fills the proposal's plan: every answer with its question, and where rows move. Rows have so many columns.
Status describe(const PrivacyPlan& plan, std::uint32_t columns, std::uint32_t classes, const Questions& questions,
                wire::v2::Proposal& proposal);

}  // namespace eigenveil::federation
