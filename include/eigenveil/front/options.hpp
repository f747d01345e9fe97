// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/data/schema.hpp"
#include "eigenveil/estimators/gep/choices.hpp"
#include "eigenveil/front/required.hpp"
#include "eigenveil/intake/center.hpp"
#include "eigenveil/intake/person.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/rows/missing_policy.hpp"

namespace eigenveil {

/// What a release may spend, between which neighbours, and who counts it.
struct Spending {
  Required<double> epsilon;  ///< from 1e-6 to 1000
  Required<double> delta;    ///< from 1e-300 to 1/2; below one over the number of rows
  Adjacency adjacency = Adjacency::kReplaceOne;
  /// No default: rows in memory belong to no file, so a ledger cannot tell by itself whose budget they are.
  Required<LedgerChoice> ledger;
  Accounting accounting = Accounting::kTight;
  std::optional<std::uint64_t> insecure_seed = {};  ///< repeatable noise, for tests: the release is then not private
  bool auto_delta = false;                          ///< rows^-1.1 instead of `delta`, where their number is public
};

/// Public bounds of one column, or of all: values outside are clamped.
struct ColumnRange {
  double lower;
  double upper;
  std::string column = {};  ///< empty: every column that has no range of its own
};

}  // namespace eigenveil

// Options are flat, so that `{.components = 2, .row_bound = 1.5}` says it all, and C++ has no designated initialisers
// for members of a base. So what several calls share is written once, here.

/// How a call runs.
#define EIGENVEIL_RUN_OPTIONS                                                                               \
  int threads = 0;        /**< 0: as many as the machine has cores */                                       \
  std::size_t memory = 0; /**< bytes to stay within, rows beyond wait in a file; 0: half of what is free */ \
  ::eigenveil::Observer* observer = nullptr; /**< hears how far the call is */

/// How rows are bounded and read. Nothing of it may come from the rows: it is published.
#define EIGENVEIL_ROW_OPTIONS                                                                                       \
  std::optional<double> row_bound = {};                     /**< longest norm; default: what the ranges allow */    \
  std::optional<bool> find_row_bound = {};                  /**< lower, privately; default: where none is stated */ \
  std::vector<::eigenveil::ColumnRange> ranges = {};        /**< public bounds of columns */                        \
  std::optional<std::string> schema = {};                   /**< or a TOML file of them; see `read_schema` */       \
  std::optional<::eigenveil::Schema> bounds = {};           /**< or the same without a file */                      \
  ::eigenveil::Center center = ::eigenveil::Center::kUsual; /**< what becomes zero */                               \
  ::eigenveil::MissingPolicy missing = ::eigenveil::MissingPolicy::kError;                                          \
  std::vector<std::string> columns = {}; /**< names, positions or ranges "1-50"; default: all */                    \
  ::eigenveil::HeaderRule header = ::eigenveil::HeaderRule::kUnstated; /**< of a CSV file */                        \
  char delimiter = '\0';                                               /**< of a CSV file; default: a comma */      \
  std::size_t fields = 0;  /**< values per row of a CSV file without a header */                                    \
  std::string member = {}; /**< array in an NPZ, data set in an HDF5 file */                                        \
  std::optional<::eigenveil::PersonOptions> person =                                                                \
      {}; /**< whose rows they are; default: each is protected by itself */                                         \
  EIGENVEIL_RUN_OPTIONS

/// How a generalized eigenproblem is solved.
#define EIGENVEIL_GEP_OPTIONS                                                                                        \
  std::optional<::eigenveil::GepNoise> noise = {};           /**< default: once, while d^2 numbers fit the memory */ \
  std::optional<Eigen::Index> sparsity = {};                 /**< columns that may have a weight; default: all */    \
  ::eigenveil::GepStart init = ::eigenveil::GepStart::kAuto; /**< of the flow */                                     \
  std::optional<double> step = {};                           /**< of the flow; default: from the products */         \
  Eigen::Index rounds = 15;                                  /**< each step: each a share of the budget */           \
  std::optional<double> ridge = {};                          /**< on B's diagonal; default: what noise asks for */
