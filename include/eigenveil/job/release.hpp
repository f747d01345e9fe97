// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/estimators/preparation.hpp"
#include "eigenveil/forecast/public_model.hpp"
#include "eigenveil/intake/engine.hpp"
#include "eigenveil/job/concerns.hpp"
#include "eigenveil/release/report.hpp"

namespace eigenveil {

/// What every fit is given: where it reads, what it may spend, how it runs, where it writes.
struct FitJob {
  RowOptions rows;
  PrivacyOptions privacy;
  RunOptions run;
  std::optional<std::string> out = {};  ///< model.npz; none: nothing is written
  std::string report = {};              ///< report.html; empty: none
  ReportOptions report_options = {};
  Confirm confirm = {};                    ///< hears concerns before the charge; none: the observer is told
  Existing existing = Existing::kReplace;  ///< what becomes of files that have the names of model and report
};

/// Which of the rivals, and the forecasts that made it so.
struct Chosen {
  std::size_t index;
  nlohmann::json planner;            ///< for the manifest
  std::optional<double> error = {};  ///< that was forecast
};

/// What rows of a shape may be like, by public knowledge alone.
using GuessedRows = std::function<Result<std::unique_ptr<PublicModel>>(const RowsShape& shape)>;

/// Estimators that could do what was asked. Of several, the one with the best forecast does it.
struct Rivals {
  std::vector<std::unique_ptr<Estimator>> estimators;
  std::vector<std::unique_ptr<Estimator>> prepared = {};  ///< several: on rows that are centred and bounded already
  GuessedRows guess = {};                                 ///< several: what these rows may be like
  std::optional<ColumnMap> columns = {};                  ///< that the model is applied to; none: all that were read
};

/// What to read, and what to run on it once its columns are known.
struct Study {
  FitJob job;
  std::function<Result<Rivals>(const OpenedData& opened)> rivals;
};

struct Release {
  Model model;
  BoundingDiagnostics diagnostics;  ///< private: for the operator's terminal alone
  std::vector<std::string> notes;   ///< what the number of rows says about the options. Private likewise
  std::string out = {};             ///< where the model is: beside the name that was asked for, if that was taken since
  std::string report = {};          ///< likewise
  std::string unrecorded = {};      ///< why the ledger does not know the model's file; empty: it does, or need not
};

/// Opens, checks, bounds, charges, fits, writes; in that order, so that a bad file or an unwritable folder costs
/// nothing.
Result<Release> release(const Study& study, Observer& observer);

/// The second half of it, for rows that are held already. `opened`: what is public about them.
Result<Release> release(const FitJob& job, const Rivals& rivals, const OpenedData& opened, HeldRows& rows,
                        Observer& observer);

/// Refuses what does not fit the public facts or could not be written, before a row is read.
Status check(const FitJob& job, const Rivals& rivals, const OpenedData& opened);

/// Has the ledger take note of the file that was written for a charge, if it is still the one that was charged. If that
/// fails, nothing is lost but the note.
Status record_file(const std::optional<LedgerEntry>& entry, const std::string& path);

/// What has to be learnt and paid for before an estimator's own work, as the row options say.
PreparationOptions preparation_of(const RowOptions& rows);

/// Of that, what a forecast counts too.
PreparationOptions forecast_preparation(const PreparationOptions& preparation);

/// `delta` auto: rows^-1.1, below one over their number.
Delta delta_for(std::size_t rows);

/// Settles `Center::kUsual`: about the mean, or about the middle of the ranges. A paper's noise has no budget for a
/// mean, nor for a search.
void settle_center(FitJob& job, bool about_mean);

}  // namespace eigenveil
