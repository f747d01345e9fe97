// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "flags.hpp"
#include "options.hpp"
#include "terminal.hpp"

#ifdef EIGENVEIL_ENGINES
#include "eigenveil/federation/site.hpp"
#endif

namespace eigenveil::app {
#ifdef EIGENVEIL_ENGINES
namespace {

struct SiteFlags {
  std::string config;
  std::string approve = "ask";
  bool once = false;
  double give_up = 0;
  int threads = 0;
  std::string memory = "auto";
};

// A line at a time, so that a log of it can be read.
void say(const std::string& line) {
  say_lines(with_flags(line) + "\n");
  std::fflush(stdout);
}

bool ask_person(const std::string& words) {
  say(words + "Take part? [yes/no] ");
  std::string answer;
  while (std::getline(std::cin, answer)) {
    if (answer == "yes") return true;
    if (answer == "no") return false;
    say("Please answer yes or no.");
  }
  return false;
}

int serve_site(const SiteFlags& flags) {
  auto config = federation::read_site_config(flags.config);
  if (!config) return fail(config.error());
  const auto memory = bytes_from_text(flags.memory);
  if (!memory) return fail(memory.error());
  config->threads = flags.threads;
  config->memory = *memory;
  federation::ServeOptions options;
  options.say = say;
  options.once = flags.once;
  if (flags.give_up > 0) options.give_up_seconds = flags.give_up;
  options.approve = ask_person;
  if (flags.approve == "policy")
    options.approve = [](const std::string& words) {
      say(words + "Approved by this site's policy.");
      return true;
    };
  say(fmt::format("Site '{}': dialling {} ('{}').", config->identity.party.name, config->coordinator,
                  config->coordinator_name));
  Observer silent;
  const auto served = federation::serve(*config, options, silent);
  return served.ok() ? 0 : fail(served.error());
}

}  // namespace

std::vector<Command> site_commands(CLI::App& program) {
  auto* site = program.add_subcommand("site", "Take part in studies of many holders with rows of one's own");
  site->require_subcommand(1);
  auto* app = site->add_subcommand("serve", "Dial the coordinator and answer what was approved and charged");
  auto flags = std::make_shared<SiteFlags>();
  app->add_option("--config", flags->config, "This site's TOML file (docs/federation.md shows one)")->required();
  app->add_option("--approve", flags->approve,
                  "ask: a person reads each study and says yes; policy: what the file allows is enough")
      ->check(CLI::IsMember({"ask", "policy"}))
      ->capture_default_str();
  app->add_flag("--once", flags->once, "End with the first study; the exit code says how it went");
  app->add_option("--give-up", flags->give_up, "End after so many seconds without a coordinator; default: never");
  app->add_option("--threads", flags->threads, "Threads; default: as many as cores")->check(CLI::Range(1, 1024));
  app->add_option("--memory", flags->memory, "Memory to stay within, such as 2G; auto: half of what is free")
      ->capture_default_str();
  app->footer(
      "\nRows never leave: the coordinator gets sums with noise, each charged to this site's ledger before it is "
      "computed.\nThe site dials out, so its firewall needs no open port. Exit codes as everywhere: 3 a refusal, 4 the "
      "budget.\nExample:\n  eigenveil site serve --config site.toml");
  return {{app, [flags] { return serve_site(*flags); }}};
}
#else
std::vector<Command> site_commands(CLI::App& program) {
  auto* app = program.add_subcommand("site", "Take part in studies of many holders (not in this build)");
  app->allow_extras();
  return {{app, [] { return fail(usage_error(kNoEngines)); }}};
}
#endif

}  // namespace eigenveil::app
