// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "flags.hpp"
#include "options.hpp"
#include "terminal.hpp"

#ifdef EIGENVEIL_ENGINES
#include "eigenveil/federation/coordinator.hpp"
#endif

namespace eigenveil::app {

#ifdef EIGENVEIL_ENGINES
void FederationFlags::add_to(CLI::App& app) {
  estimator = app.get_name();
  app.add_option("--sites", sites, "Names of the sites' certificates: a,b,c")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required()
      ->group("Sites");
  app.add_option("--peers", peers, "TOML file with the keys of the sites, as each site told: north = \"4f0c...\"")
      ->required()
      ->group("Sites");
  app.add_option("--purpose", purpose, "Why, in a sentence for the people at the sites")->group("Sites");
  app.add_option("--valid-days", valid_days, "How long sites may be asked")->capture_default_str()->group("Sites");
  app.add_option("--journal", journal,
                 "Folder for what sites answered; the same folder continues a study after a crash")
      ->required()
      ->group("Sites");
  app.add_option("--listen", listen, "Address and port where sites dial in")->capture_default_str()->group("Sites");
  app.add_option("--authority", authority, "Certificate of the study's authority")
      ->capture_default_str()
      ->group("Sites");
  app.add_option("--certificate", certificate, "This coordinator's certificate")->capture_default_str()->group("Sites");
  app.add_option("--key", key, "Its key")->capture_default_str()->group("Sites");
  app.add_option(
         "--aggregation", aggregation,
         "local: every site adds the full noise and trusts nobody; secure: sites add a share each and mask it, so "
         "that only totals are seen, with N times less noise variance")
      ->check(CLI::IsMember({"local", "secure"}))
      ->capture_default_str()
      ->group("Sites");
  app.add_option("--colluders", colluders,
                 "secure: how many sites may tell others what they know; each makes the noise larger")
      ->capture_default_str()
      ->group("Sites");
  app.add_option("--lost", lost, "secure: how many sites may be missing; each makes the noise larger")
      ->capture_default_str()
      ->group("Sites");
  app.add_option("--spare-rounds", spare_rounds,
                 "secure: rounds that can be asked again when a site is lost; each is a share of the budget")
      ->capture_default_str()
      ->group("Sites");
  app.add_option("--min-sites", min_sites, "Go on with so many sites; default: all (secure: all but --lost)")
      ->group("Sites");
  app.add_option("--patience", patience, "Seconds that a site may take to accept or to answer")
      ->capture_default_str()
      ->group("Sites");
}

Result<std::shared_ptr<Engine>> FederationFlags::engine() const {
  federation::CoordinatorOptions options;
  auto identity =
      EIGENVEIL_TRY(federation::Identity::read(federation::Role::kCoordinator, authority, certificate, key));
  options.identity = std::move(identity);
  options.peers = EIGENVEIL_TRY(federation::read_pins(peers));
  options.listen = listen;
  options.sites = sites;
  options.aggregation = aggregation == "secure" ? federation::Aggregation::kSecure : federation::Aggregation::kLocal;
  options.colluders = colluders;
  options.lost = lost;
  options.purpose = purpose;
  options.valid_days = valid_days;
  options.spare_rounds = spare_rounds;
  options.min_sites = min_sites;
  options.patience_seconds = patience;
  options.journal = journal;
  options.estimator = estimator == "lda" ? "fda" : estimator;
  options.say = [](const std::string& line) {
    complain("{}eigenveil: {}\n", ::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", with_flags(line));
  };
  return federation::federated_engine(std::move(options));
}

std::vector<Command> coordinate_commands(CLI::App& program) {
  auto* app = program.add_subcommand("coordinate", "Fit a model on rows that several sites hold, without seeing a row");
  app->require_subcommand(1);
  app->footer(
      "\nExample:\n  eigenveil coordinate pca --schema schema.toml --components 5 --epsilon 1 --delta 1e-6 \\\n"
      "      --sites north,south --peers peers.toml --journal study --authority ca.crt --certificate coordinator.crt "
      "--key "
      "coordinator.key\n"
      "Columns and bounds are named here (--schema, or --columns and --range) and checked by each site against its "
      "own.\nThe tutorial is docs/federation.md.");
  auto commands = fit_commands(*app, true);
  const std::set<std::string> common = {"--epsilon", "--delta", "--sites", "--peers", "--journal"};
  for (const Command& command : commands) {
    std::string needed;
    for (const CLI::Option* option : command.app->get_options()) {
      std::string value = option->get_name().substr(2);
      std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
      if (option->get_required() && !common.contains(option->get_name()))
        needed += option->get_name() + " " + value + " ";
    }
    command.app->footer(
        fmt::format("\nExample:\n  eigenveil coordinate {} --schema schema.toml {}--epsilon 1 --delta 1e-6 --sites "
                    "north,south --peers peers.toml --journal study --authority ca.crt --certificate coordinator.crt "
                    "--key coordinator.key",
                    command.app->get_name(), needed));
  }
  return commands;
}
#else
void FederationFlags::add_to(CLI::App&) {}
Result<std::shared_ptr<Engine>> FederationFlags::engine() const { return usage_error(kNoEngines); }

std::vector<Command> coordinate_commands(CLI::App& program) {
  auto* app = program.add_subcommand("coordinate", "Fit a model on rows of several sites (not in this build)");
  app->allow_extras();
  return {{app, [] { return fail(usage_error(kNoEngines)); }}};
}
#endif

}  // namespace eigenveil::app
