// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/job/covariance.hpp"
#include "eigenveil/job/pca.hpp"
#include "stop.hpp"

namespace eigenveil::app {

/// A subcommand's work: runs after parsing and returns the exit code.
using Action = std::function<int()>;

/// Adds a subcommand to the program; the returned action is called when the user named it.
struct Command {
  CLI::App* app;
  Action run;
};

// Options that several subcommands share, as the user typed them, and what they mean to the library.

struct SourceFlags {
  std::vector<std::string> columns;
  std::string header;
  std::string delimiter;
  std::size_t fields = 0;
  std::string member;
  void add_to(CLI::App& app);
  Result<SourceOptions> options() const;
};

/// --missing. `cells`: what is missing may be filled in by a public rule.
void add_missing_option(CLI::App& app, std::string& missing, const char* group, bool cells = false);
MissingPolicy missing_policy(const std::string& missing);

/// Whose rows they are.
struct PersonFlags {
  std::string column;
  std::string weight = "equal";
  std::optional<std::size_t> most_rows;
  std::string missing = "error";
  void add_to(CLI::App& app);
  Result<std::optional<PersonOptions>> options() const;
};

struct RowFlags {
  std::string data;
  std::string schema;
  std::vector<std::string> ranges;
  std::string row_bound;
  std::string center;
  std::string missing = "error";
  SourceFlags source;
  PersonFlags person;
  void add_to(CLI::App& app);
  Result<RowOptions> options() const;
};

struct PrivacyFlags {
  double epsilon = 0;
  std::string delta;
  std::string adjacency = "replace-one";
  std::string accounting = "tight";
  std::string calibration = "tight";
  std::string dataset;
  std::string ledger;
  bool no_ledger = false;
  void add_to(CLI::App& app);
  /// `expected_rows`: a public guess, for --delta auto where the number of rows is private.
  Result<PrivacyOptions> options(std::optional<std::size_t> expected_rows = {}) const;
};

/// The spiked model, for pca and covariance.
struct SpikedFlags {
  std::string rank;
  std::string guarantee = "strict";
  std::optional<double> noise_variance;
  std::optional<double> spike;
  void add_to(CLI::App& app);
  Result<SpikedOptions> options() const;
};

/// --scale, of components and covariances.
void add_scale(CLI::App& app, std::string& scale);

/// --score-plot, of components: a share of the budget.
CLI::Option* add_score_plot(CLI::App& app, std::optional<double>& share);

/// What a forecast may assume about the rows.
struct GuessFlags {
  std::string spectrum;
  std::optional<std::size_t> expected_rows;
  double signal_share = 1;
  void add_to(CLI::App& app);
  PublicGuess options() const { return {spectrum, expected_rows, signal_share}; }
};

/// The sites of a study, for commands below `coordinate`.
struct FederationFlags {
  std::string estimator;
  std::vector<std::string> sites;
  std::string listen = "0.0.0.0:7443";
  std::string peers;
  std::string purpose;
  double valid_days = 7;
  std::string journal;
  std::string authority = "ca.crt";
  std::string certificate = "coordinator.crt";
  std::string key = "coordinator.key";
  std::string aggregation = "local";
  std::size_t colluders = 1;
  std::size_t lost = 0;
  std::size_t spare_rounds = 0;
  std::size_t min_sites = 0;
  double patience = 600;
  void add_to(CLI::App& app);
  Result<std::shared_ptr<Engine>> engine() const;
};

struct RunFlags {
  int threads = 0;
  std::string memory = "auto";
  std::string insecure_seed;
  std::shared_ptr<FederationFlags> federation;  ///< below `coordinate` only
  std::string engine = "local";
  void add_to(CLI::App& app);
  void add_engine_to(CLI::App& app);  ///< for commands that read rows
  Result<RunOptions> options() const;
};

struct OutputFlags {
  std::string out = "model.npz";
  std::string report;
  std::string image_shape;
  bool json = false;
  bool quiet = false;
  bool diagnostics = false;
  bool yes = false;
  bool force = false;
  void add_to(CLI::App& app);
  Existing existing() const { return force ? Existing::kReplace : Existing::kRefuse; }
  Result<ReportOptions> report_options() const;
};

/// Whether a command is one below `coordinate`: its rows are elsewhere, and so are ledgers and noise.
bool elsewhere(const CLI::App& app);

/// What a build without gRPC and MPI says.
constexpr const char* kNoEngines = "this build has no federation: run scripts/install-packages engines and build again";

/// What every fit takes.
Result<FitJob> fit_job(const RowFlags& rows, const PrivacyFlags& privacy, const RunFlags& run,
                       const OutputFlags& output, std::optional<std::size_t> expected_rows = {});

/// Concerns are told to whoever said --yes, asked of a person, and end a run that nobody watches.
Confirm confirm_by(const OutputFlags& output);

/// What somebody who stops a fit has to know.
Bearings bearings_of(const FitJob& job);

/// Runs a study, with its progress on the terminal.
Result<Release> released(const Result<Study>& study, const OutputFlags& output);

/// A number from 1: what it refuses it answers with the range.
CLI::Validator from_one();

/// What --delta says, but for auto.
Result<Delta> delta_from_text(const std::string& text);

/// A whole number from 1.
std::optional<std::size_t> count_from_text(const std::string& text);

/// "2G", "512M", "64K", a number of bytes, or "auto": `memory_by_default`.
Result<std::size_t> bytes_from_text(const std::string& text);

/// `for_sites`: only those whose rows several sites may hold.
std::vector<Command> fit_commands(CLI::App& program, bool for_sites = false);
std::vector<Command> plan_commands(CLI::App& program);
Command bare_plan_command(CLI::App& program);
std::vector<Command> gep_plan_commands(CLI::App& program);  ///< below `plan`, so after plan_commands
Command clip_plan_command(CLI::App& program);               ///< likewise
std::vector<Command> fit_plan_commands(CLI::App& program);  ///< likewise
std::vector<Command> clip_commands(CLI::App& program);
Command clip_train_command(CLI::App& clip);  ///< below `clip`
Command clip_encoders_command(CLI::App& clip);
std::vector<Command> site_commands(CLI::App& program);
std::vector<Command> coordinate_commands(CLI::App& program);
Command transform_command(CLI::App& program);
Command report_command(CLI::App& program);
Command completions_command(CLI::App& program);
Command account_command(CLI::App& program);
Command version_command(CLI::App& program);
/// What it prints without --json.
std::string version_text();
std::vector<Command> ledger_commands(CLI::App& program);
std::vector<Command> federation_commands(CLI::App& program);
Command schema_command(CLI::App& program);
Command generate_command(CLI::App& program);
std::vector<Command> demo_commands(CLI::App& program);
Command demo_federation_command(CLI::App& demo);
Command demo_clip_command(CLI::App& demo);

/// Shows a finished fit of any kind to a person or a program, or why there is none.
int show_release(const Result<Release>& outcome, OutputFlags output);

}  // namespace eigenveil::app
