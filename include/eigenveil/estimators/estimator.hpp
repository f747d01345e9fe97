// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/base/named_array.hpp"
#include "eigenveil/privacy/budget.hpp"
#include "eigenveil/query/oracle.hpp"
#include "eigenveil/verdict/verdict.hpp"

namespace eigenveil {

/// What a fit gives: what was released, what follows from it, and public facts.
struct Fit {
  std::vector<NamedArray> arrays;
  std::optional<double> rows;                       ///< public, or a released count; none: nobody asked
  nlohmann::json facts = nlohmann::json::object();  ///< for the manifest, beside what every release says
  std::vector<std::string> warnings = {};
  nlohmann::json options = nlohmann::json::object();  ///< that followed from the budget, beside the estimator's own
  std::string beside = {};  ///< a release that this one comes on top of, in words: part of what is guaranteed
  /// What its directions are worth: post-processing, for a release; forecasts do without. Empty: nothing is said.
  Judge judge = {};
};

/// A public program that sees the data only through noisy exact sums over bounded rows. Everything it may decide, it
/// decides from its options, public facts and answers.
class Estimator {
 public:
  virtual ~Estimator() = default;

  /// The kind of its model: "pca", ...
  virtual std::string_view name() const = 0;
  /// Which of several ways to that model.
  virtual std::string method() const = 0;
  /// The same with what tells it from others of that method: "adaptive-power, 4 rounds".
  virtual std::string describe() const { return method(); }
  /// What the ledger remembers: "pca, method gram, components 5".
  virtual std::string purpose() const = 0;
  /// Its options, as a manifest tells them.
  virtual nlohmann::json options() const = 0;

  /// Refuses options that do not go together, or do not fit rows of that shape or such a budget. Nothing is charged
  /// yet.
  virtual Status check(const RowsShape& shape, const Budget& budget) const = 0;
  /// Every answer that `fit` will ask for, with relative weights for `calibrate`. It may follow what is public about
  /// the rows: their number where `shape` has it, their columns and their bound.
  virtual Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const = 0;
  /// The plan has absolute noise instead, whatever it costs: only what is in papers/ says so.
  virtual bool noise_settled() const { return false; }
  /// Why rows of that shape would teach nothing at such a budget, in words; nothing if they may. From public facts
  /// alone.
  virtual std::optional<std::string> hopeless(const RowsShape& /*shape*/, const Budget& /*budget*/) const { return {}; }
  /// Whether a choice by forecasts may take it: these do not see how rows that are unlike theirs bend what is found.
  virtual bool suits(const RowsShape& /*shape*/, const Budget& /*budget*/) const { return true; }
  /// Bytes of its own sums besides the rows.
  virtual std::size_t bytes(std::size_t columns, int threads) const = 0;
  /// Asks for everything in the plan, in its order. The oracle's plan is `plan` with its noise settled.
  virtual Result<Fit> fit(Oracle& oracle, const Budget& budget) const = 0;

  /// What the number of rows says about the options. It may be private: for the operator alone.
  virtual std::vector<std::string> notes(std::size_t /*rows*/) const { return {}; }
};

/// "3 of the 5 directions ...": said of those that noise alone would give.
std::string drowned_warning(std::size_t drowned, std::size_t of);
/// The same of values up to an edge, unless a judge will say it better.
void warn_if_drowned(Fit& fit, const Vector& values, double noise_edge);

}  // namespace eigenveil
