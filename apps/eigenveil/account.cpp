// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct AccountFlags {
  std::vector<std::string> events;
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::string accounting = "tight";
  bool json = false;
};

Result<std::pair<double, double>> total(const AccountFlags& flags, const std::vector<PrivacyEvent>& events) {
  const Accounting accounting = flags.accounting == "tight" ? Accounting::kTight : Accounting::kZcdp;
  if (flags.epsilon.has_value() == flags.delta.has_value())
    return usage_error("give --delta to learn epsilon, or --epsilon to learn delta: one of the two");
  if (flags.delta) {
    const auto delta = EIGENVEIL_TRY(Delta::of(*flags.delta));
    const auto epsilon = EIGENVEIL_TRY(epsilon_of(events, delta, accounting));
    if (std::isinf(epsilon))
      return usage_error(fmt::format(
          "these answers together have an epsilon above 1000 at delta {:g}, where nothing is promised; list fewer of "
          "them, or such with more noise",
          *flags.delta));
    return std::pair(epsilon, *flags.delta);
  }
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(*flags.epsilon));
  const auto delta = EIGENVEIL_TRY(delta_of(events, epsilon.value(), accounting));
  return std::pair(*flags.epsilon, delta);
}

int run(const AccountFlags& flags) {
  std::vector<PrivacyEvent> events;
  for (const std::string& text : flags.events) {
    auto event = event_from_text(text);
    if (!event) return fail(event.error());
    events.push_back(*std::move(event));
  }
  const auto sum = total(flags, events);
  if (!sum) return fail(sum.error());
  const auto [epsilon, delta] = *sum;
  if (flags.json) {
    nlohmann::json object = {
        {"epsilon", epsilon}, {"delta", delta}, {"accounting", flags.accounting}, {"events", flags.events}};
    say_json(object);
  } else {
    tell("All of these answers together are ({:.6g}, {:.6g})-differentially private (rounded up).\n", epsilon, delta);
  }
  return 0;
}

}  // namespace

Command account_command(CLI::App& program) {
  auto* app = program.add_subcommand("account", "What a list of noisy answers costs in epsilon and delta");
  auto flags = std::make_shared<AccountFlags>();
  app->add_option("--event", flags->events,
                  "gaussian:mu=M, pure:epsilon=E or poisson-gaussian:q=Q,sigma=S; count=N repeats")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--delta", flags->delta, "Delta to state epsilon at");
  app->add_option("--epsilon", flags->epsilon, "Epsilon to state delta at");
  app->add_option("--accounting", flags->accounting, "tight or zcdp")
      ->check(CLI::IsMember({"tight", "zcdp"}))
      ->capture_default_str();
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->footer(
      "\nExample:\n  eigenveil account --delta 1e-6 --event gaussian:mu=0.2,count=8 --event pure:epsilon=0.05,count=8\n"
      "mu is sensitivity / sigma. poisson-gaussian is stated for adding or removing one row.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace eigenveil::app
