// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <exception>
#include <new>
#include <sstream>

#include "eigenveil/base/version.hpp"
#include "flags.hpp"
#include "help.hpp"
#include "options.hpp"
#include "overwriting.hpp"
#include "suggest.hpp"
#include "terminal.hpp"

#ifdef EIGENVEIL_ENGINES
#include "eigenveil/mpi/mpi.hpp"
#endif

namespace eigenveil::app {
namespace {

constexpr const char* kFooter = R"(
Examples:
  eigenveil demo
  eigenveil schema init examples/patients.csv --header yes > patients.toml      # then fill in the public bounds
  eigenveil ledger create patients --epsilon 2 --delta 1e-6
  eigenveil pca examples/patients.csv --schema examples/patients.toml --components 2 --epsilon 1 --delta 1e-6 \
      --dataset patients
  eigenveil transform model.npz examples/patients.csv --out scores.csv
  mpirun -q -n 8 eigenveil pca parts/ --range 0:1 --components 5 --epsilon 1 --delta 1e-6 --engine mpi

Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 budget refused, 5 internal error; 128 + N stopped by signal N
(130: Ctrl-C).
'eigenveil COMMAND --help' tells more about a command.)";

Command help_command(CLI::App& program) {
  auto* app = program.add_subcommand("help", "Print this help, or that of a command");
  auto words = std::make_shared<std::vector<std::string>>();
  app->add_option("COMMAND", *words, "Its name, such as pca or ledger create");
  app->footer("\nExample:\n  eigenveil help ledger create");
  return {app, [&program, words] {
            const CLI::App* command = command_named(program, *words);
            if (command == nullptr) {
              const std::string meant = did_you_mean(program, *words);
              return fail(usage_error(meant.empty() ? "there is no such command" : meant));
            }
            // App::help would tell of the command that was chosen: this one.
            say_lines(program.get_formatter()->make_help(command, full_name(*command), CLI::AppFormatMode::Normal));
            return 0;
          }};
}

/// A variable of a script that was not set: without a data set nothing is limited, and without a person a row is one.
Error is_empty(const std::string& option) {
  return usage_error(fmt::format("{} is empty: say what it is, or leave it out altogether", option));
}

/// "--ledger=": the parser would take the next word for its value, whatever it is.
Status check_words(const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return is_empty(word.substr(0, word.size() - 1));
  return {};
}

Status check_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) return is_empty(option->get_name());
  return {};
}

std::string what_is_wrong(const CLI::App& program, const CLI::ParseError& error) {
  if (program.get_subcommands().empty()) return "name a command first, as in 'eigenveil pca DATA --epsilon 1'";
  const bool number = dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  return error.what() + std::string(number ? ": a number is expected" : "");
}

int run(int argc, char** argv) {
  CLI::App program("Eigenveil learns the spectral structure of private data and releases it with differential privacy.",
                   "eigenveil");
  program.footer(kFooter);
  program.formatter(wrapped_help());
  program.require_subcommand(1);
  program.set_version_flag("--version", version_text, "Print what 'eigenveil version' prints");

  std::vector<Command> commands = fit_commands(program);
  commands.push_back(transform_command(program));
  commands.push_back(report_command(program));
  commands.push_back(account_command(program));
  for (Command& command : clip_commands(program)) commands.push_back(std::move(command));
  for (Command& command : plan_commands(program)) commands.push_back(std::move(command));
  for (Command& command : gep_plan_commands(program)) commands.push_back(std::move(command));
  for (Command& command : fit_plan_commands(program)) commands.push_back(std::move(command));
  commands.push_back(clip_plan_command(program));
  commands.push_back(bare_plan_command(program));  // behind those below it
  for (Command& command : ledger_commands(program)) commands.push_back(std::move(command));
  for (Command& command : federation_commands(program)) commands.push_back(std::move(command));
  for (Command& command : site_commands(program)) commands.push_back(std::move(command));
  for (Command& command : coordinate_commands(program)) commands.push_back(std::move(command));
  commands.push_back(schema_command(program));
  commands.push_back(generate_command(program));
  for (Command& command : demo_commands(program)) commands.push_back(std::move(command));
  commands.push_back(version_command(program));
  commands.push_back(completions_command(program));
  commands.push_back(help_command(program));

  for (const Command& command : commands) add_force(*command.app);
  remember_flags(program);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    say_lines(kWelcome);
    return 0;
  }
  if (const Status stated = check_words(words); !stated) return fail(stated.error());
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream complaint;
    if (program.exit(error, out, complaint) != 0) {
      // A word that nobody knows explains whatever else is missing.
      const std::string meant = did_you_mean(program, words);
      const int code = fail(usage_error(meant.empty() ? what_is_wrong(program, error) : meant));
      complain("Run 'eigenveil help', or 'eigenveil help COMMAND', for what is possible.\n");
      return code;
    }
    say_lines(out.str());
    return 0;
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    if (const Status stated = check_values(*command.app); !stated) return fail(stated.error());
    if (const Status distinct = check_overwriting(*command.app); !distinct) return fail(distinct.error());
    return command.run();
  }
  return static_cast<int>(ErrorCode::kInternal);
}

int guarded_run(int argc, char** argv) {
  remember_command(argc, argv);
  try {
    return run(argc, argv);
  } catch (const Stopped& stopped) {
    say_stopped(stopped.words, stopped.exit_code);
    return stopped.exit_code;
  } catch (const std::bad_alloc&) {
    return fail(internal_error("out of memory; lower --memory, or use fewer columns"));
  } catch (const std::exception& error) {
    return fail(internal_error(fmt::format("internal error: {}", error.what())));
  }
}

#ifdef EIGENVEIL_ENGINES
// Known before the options are parsed: of the ranks, one alone parses them.
bool asks_for_mpi(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == "--engine=mpi" || (words[i] == "--engine" && i + 1 < words.size() && words[i + 1] == "mpi"))
      return true;
  return false;
}
#endif

}  // namespace
}  // namespace eigenveil::app

int main(int argc, char** argv) {
  using namespace eigenveil::app;
#ifdef EIGENVEIL_ENGINES
  if (asks_for_mpi(argc, argv)) return eigenveil::mpi::run([&] { return guarded_run(argc, argv); });
#endif
  return guarded_run(argc, argv);
}
