// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/ledger.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "eigenveil/base/figures.hpp"
#include "options.hpp"
#include "terminal.hpp"
#include "verified.hpp"

namespace eigenveil::app {
namespace {

struct LedgerFlags {
  std::string path;
  std::string name;
  double epsilon = 0;
  std::string delta;
  std::optional<std::size_t> rows;
  std::string adjacency = "replace-one";
  std::string person;
  bool allow_model_based = false;
  std::vector<std::string> data;
  double spent = 0;
  std::string out;                  // of an export
  std::string backup;               // file
  std::vector<std::string> models;  // to verify
  CLI::App* app = nullptr;          // of the backup
  bool json = false;
};

std::string path_of(const LedgerFlags& flags) { return flags.path.empty() ? Ledger::default_path() : flags.path; }

Result<Ledger> open(const LedgerFlags& flags) { return Ledger::open_existing(path_of(flags)); }

nlohmann::json to_json(const DatasetStatus& status) {
  const DatasetBudget& budget = status.budget;
  nlohmann::json object = {{"name", budget.name},
                           {"adjacency", name(budget.adjacency)},
                           {"unit", budget.person.empty() ? "row" : "person"},
                           {"allow_model_based", budget.allow_model_based},
                           {"created", status.created},
                           {"filter", status.filter},
                           {"spent_epsilon", status.spent_epsilon},
                           {"delta", status.spent_delta},
                           {"remaining", status.remaining},
                           {"reservations", nlohmann::json::array()}};
  if (!budget.person.empty()) object["person"] = budget.person;
  if (budget.limit) {
    object["epsilon"] = budget.limit->epsilon.value();
    object["remaining_epsilon"] = status.remaining_epsilon;
  }
  object["frozen"] = status.frozen;
  object["works"] = nlohmann::json::array();
  for (const WorkRecord& work : status.works)
    object["works"].push_back({{"key", work.key},
                               {"state", name(work.state)},
                               {"step", work.step},
                               {"expires", work.expires},
                               {"returned", work.refunded}});
  for (const ReservationRecord& record : status.reservations)
    object["reservations"].push_back({{"id", record.id},
                                      {"created", record.created},
                                      {"purpose", record.purpose},
                                      {"state", name(record.state)},
                                      {"mark", record.mark},
                                      {"model_sha256", record.model},
                                      {"events", events_to_json(record.plan.events)}});
  return object;
}

std::string unit_in_words(const std::string& person) {
  return person.empty() ? "one row" : fmt::format("one person, with all their rows (column '{}')", person);
}

// "2 - 1 leaves 1.658": said with the numbers at hand, where they do not add up.
std::string why_more_remains(const DatasetStatus& status) {
  const double whole = status.budget.limit ? status.budget.limit->epsilon.value() : 0;
  const double left = status.remaining_epsilon, rest = whole - status.spent_epsilon;
  if (!(status.spent_epsilon > 0) || !(left > 0) || fmt::format("{:.4g}", left) == fmt::format("{:.4g}", rest))
    return "";
  return fmt::format(
      "{:g} - {:.4g} leaves {:.4g} and not {:.4g}, because the noise of several releases is accounted for together, "
      "and "
      "together they give away less than the sum of what each would alone.",
      whole, status.spent_epsilon, left, std::max(0.0, rest));
}

void show_words(const DatasetStatus& status) {
  const DatasetBudget& budget = status.budget;
  tell("{}\n", budget.name);
  if (budget.limit)
    tell("  budget     epsilon {:g} at delta {}, {}\n", budget.limit->epsilon.value(),
         plain(budget.limit->delta.value()), name(budget.adjacency));
  else
    tell("  budget     none: spending is recorded, not limited; {}\n", name(budget.adjacency));
  tell("  protects   {}\n", unit_in_words(budget.person));
  if (budget.allow_model_based) tell("  allows     guarantees that hold only if the rows are drawn from a model\n");
  tell("  spent      epsilon {:.4g} at delta {}\n", status.spent_epsilon, plain(status.spent_delta));
  tell("  remaining  {}\n", status.remaining);
  if (const std::string why = why_more_remains(status); !why.empty()) tell("             {}\n", why);
  if (status.frozen)
    tell("  {}     this ledger is an older copy: say what was spent since, with accept-restore NAME --spent EPSILON\n",
         painted("FROZEN", Colour::kRed));
}

// How a work stands, and how it ends.
std::string work_in_words(const WorkRecord& work) {
  const std::string charge = work.refunded ? "its charge was given back" : "its charge stays";
  if (is_final(work.state)) return fmt::format("{} after {} steps; {}", name(work.state), work.step, charge);
  const std::string end = work.expires.empty() ? "ends when its process closes it" : "expires " + work.expires;
  return fmt::format("{}, step {}; {}, {}", name(work.state), work.step, end,
                     work.state == WorkState::kAnswering ? "and its charge stays" : "then its charge is given back");
}

int create(const LedgerFlags& flags) {
  const auto epsilon = Epsilon::of(flags.epsilon);
  if (!epsilon) return fail(epsilon.error());
  if (flags.delta == "auto" && !flags.rows)
    return fail(usage_error("--delta auto needs --rows N, how many rows (or people) there are: delta is then N^-1.1"));
  const auto delta = flags.delta == "auto" ? Result<Delta>(delta_for(*flags.rows)) : delta_from_text(flags.delta);
  if (!delta) return fail(delta.error());
  const auto adjacency = adjacency_from_name(flags.adjacency);
  if (!adjacency) return fail(adjacency.error());
  auto ledger = Ledger::open(path_of(flags));
  if (!ledger) return fail(ledger.error());
  const DatasetBudget budget{flags.name, DatasetBudget::Limit{*epsilon, *delta}, *adjacency, flags.person,
                             flags.allow_model_based};
  const auto files = ledger->hash_files(flags.data);
  if (!files) return fail(files.error());
  if (const Status created = ledger->create(budget, *files); !created) return fail(created.error());
  if (flags.json)
    say_json({{"name", flags.name},
              {"epsilon", flags.epsilon},
              {"delta", delta->value()},
              {"adjacency", flags.adjacency},
              {"unit", flags.person.empty() ? "row" : "person"}});
  else
    tell("Data set '{}' may spend epsilon {:g} at delta {} in all, {}. It protects {}.\n", flags.name, flags.epsilon,
         plain(delta->value()), flags.adjacency, unit_in_words(flags.person));
  return 0;
}

Result<std::vector<DatasetStatus>> datasets_of(const LedgerFlags& flags) {
  std::error_code ignored;
  if (flags.path.empty() && !std::filesystem::exists(path_of(flags), ignored)) return std::vector<DatasetStatus>();
  auto ledger = EIGENVEIL_TRY(open(flags));
  return ledger.list();
}

int list(const LedgerFlags& flags) {
  const auto statuses = datasets_of(flags);
  if (!statuses) return fail(statuses.error());
  if (flags.json) {
    nlohmann::json object = {{"datasets", nlohmann::json::array()}};
    for (const DatasetStatus& status : *statuses) object["datasets"].push_back(to_json(status));
    say_json(object);
    return 0;
  }
  if (statuses->empty()) tell("No data sets yet. Make one with: eigenveil ledger create NAME --epsilon E --delta D\n");
  for (const DatasetStatus& status : *statuses) show_words(status);
  return 0;
}

int show(const LedgerFlags& flags) {
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  const auto status = ledger->show(flags.name);
  if (!status) return fail(status.error());
  if (flags.json) {
    say_json(to_json(*status));
    return 0;
  }
  show_words(*status);
  tell("  held by    {}\n", status->filter);
  for (const ReservationRecord& record : status->reservations) {
    tell("  #{} {} {:9} {}\n", record.id, record.created, name(record.state), record.purpose);
    for (const PrivacyEvent& event : record.plan.events) tell("       {}: {}\n", event.label, to_text(event));
    if (!record.model.empty()) tell("       model file: SHA-256 {}\n", record.model);
  }
  for (const WorkRecord& work : status->works) tell("  {}: {}\n", work.key, work_in_words(work));
  return 0;
}

int accept_restore(const LedgerFlags& flags) {
  std::optional<Epsilon> spent;
  if (flags.spent != 0) {
    const auto epsilon = Epsilon::of(flags.spent);
    if (!epsilon)
      return fail(
          usage_error(fmt::format("--spent must be 0 or lie between 0.000001 and 1000, but is {}", flags.spent)));
    spent = *epsilon;
  }
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  if (const Status accepted = ledger->accept_restore(flags.name, spent); !accepted) return fail(accepted.error());
  if (flags.json)
    say_json({{"name", flags.name}, {"spent", flags.spent}});
  else
    tell("'{}' goes on, with epsilon {:g} recorded as spent since the copy was taken.\n", flags.name, flags.spent);
  return 0;
}

int verify(const LedgerFlags& flags) {
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  const auto rows = ledger->verify();
  if (!rows) return fail(rows.error());
  const auto generation = ledger->generation();
  if (!generation) return fail(generation.error());
  nlohmann::json told = {{"rows", *rows}, {"generation", *generation}, {"models", nlohmann::json::array()}};
  if (!flags.json) tell("All {} rows match their checksums; generation {}.\n", *rows, *generation);
  bool fine = true;
  for (const std::string& path : flags.models) {
    const auto found = verify_model(*ledger, path);
    if (!found) return fail(found.error());
    told["models"].push_back({{"model", path}, {"verified", to_json(found->same)}, {"words", found->words}});
    if (!flags.json) tell("{}: {}.\n", path, found->words);
    fine = fine && found->same == SameFile::kYes;
  }
  if (flags.json) say_json(told);
  return fine ? 0 : static_cast<int>(ErrorCode::kBadInput);
}

int back_up(const LedgerFlags& flags) {
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  const bool force = flags.app->count("--force") > 0;
  if (const Status done = ledger->backup(flags.backup, force ? Existing::kReplace : Existing::kRefuse); !done)
    return fail(done.error());
  const auto generation = ledger->generation();
  if (!generation) return fail(generation.error());
  if (flags.json)
    say_json({{"backup", flags.backup}, {"key", flags.backup + ".key"}, {"generation", *generation}});
  else
    tell(
        "Wrote {0} and {0}.key (a secret: keep both where the ledger's owner alone can read). To go back to it, copy "
        "both "
        "to the ledger's place; what was charged meanwhile is then asked for (accept-restore).\n",
        flags.backup);
  return 0;
}

int export_all(const LedgerFlags& flags) {
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  const auto generation = ledger->generation();
  if (!generation) return fail(generation.error());
  const auto statuses = ledger->list();
  if (!statuses) return fail(statuses.error());
  nlohmann::json object = {{"generation", *generation}, {"datasets", nlohmann::json::array()}};
  for (const DatasetStatus& status : *statuses) object["datasets"].push_back(to_json(status));
  if (flags.out.empty()) {
    say_json(object);
    return 0;
  }
  const std::string text = object.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  if (const Status written = write_file(flags.out, text); !written) return fail(written.error());
  if (flags.json)
    say_json({{"export", flags.out}, {"datasets", statuses->size()}});
  else
    tell("Wrote {} data set{} to {}.\n", statuses->size(), statuses->size() == 1 ? "" : "s", flags.out);
  return 0;
}

int release_unused(const LedgerFlags& flags) {
  auto ledger = open(flags);
  if (!ledger) return fail(ledger.error());
  const auto returned = ledger->release_unused(flags.name);
  if (!returned) return fail(returned.error());
  if (flags.json)
    say_json({{"name", flags.name}, {"returned", *returned}});
  else
    tell("Gave back {} reservation{} of '{}' that never answered anything.\n", *returned, *returned == 1 ? "" : "s",
         flags.name);
  return 0;
}

}  // namespace

std::vector<Command> ledger_commands(CLI::App& program) {
  auto* app = program.add_subcommand("ledger", "Privacy budgets: make, look at, give back what was never used");
  app->require_subcommand(1);
  auto flags = std::make_shared<LedgerFlags>();
  const auto add = [&](const char* name, const char* help, int (*run)(const LedgerFlags&), bool named) {
    auto* sub = app->add_subcommand(name, help);
    if (named) sub->add_option("NAME", flags->name, "Data set")->required();
    sub->add_option("--ledger", flags->path, "Ledger file; default: ~/.local/share/eigenveil/ledger.db");
    sub->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
    return Command{sub, [flags, run] { return run(*flags); }};
  };
  std::vector<Command> commands = {
      add("create", "Give a data set a budget that all its releases together must keep", create, true),
      add("list", "All data sets, what they spent and what remains", list, false),
      add("show", "One data set with every reservation", show, true),
      add("release-unused", "Give back reservations whose run never asked anything", release_unused, true),
      add("accept-restore", "After an older copy of the ledger came back: say what was spent since", accept_restore,
          true),
      add("verify", "Check every row against its checksum, and models against what was charged for them", verify,
          false),
      add("backup", "Copy the ledger and its key as they are at one moment", back_up, false),
      add("export", "All data sets and entries as JSON", export_all, false)};
  CLI::App* made = commands[0].app;
  made->add_option("--epsilon", flags->epsilon, "Privacy loss that all releases together may reach")->required();
  made->add_option("--delta", flags->delta,
                   "Probability that epsilon does not hold; below 1 / number of rows. auto: --rows^-1.1")
      ->required();
  made->add_option("--rows", flags->rows, "With --delta auto: how many rows (or people) there are")->check(from_one());
  made->add_option("--adjacency", flags->adjacency, "replace-one or add-remove-one")->capture_default_str();
  made->add_option("--person", flags->person,
                   "Column that says whose a row is: the budget protects a person, with all their rows, and pays for "
                   "releases with the same --person only; default: it protects a row");
  made->add_flag("--allow-model-based", flags->allow_model_based,
                 "Pay also for guarantees that hold only if the rows are drawn from a model (--guarantee model)");
  made->add_option("--data", flags->data, "File or folder that belongs to it: its releases are charged here by default")
      ->allow_extra_args(false)
      ->take_all();
  commands[4]
      .app->add_option("--spent", flags->spent, "Epsilon, at the data set's delta, of all releases since; 0 for none")
      ->required();
  commands[5].app->add_option(
      "MODEL", flags->models,
      "Models: is each the file that was written for its entry? If not, or if it cannot be told: exit code 3");
  commands[6]
      .app->add_option("BACKUP", flags->backup, "File to write; its key goes beside it, as BACKUP.key")
      ->required();
  flags->app = commands[6].app;
  commands[7].app->add_option("--out", flags->out, "File to write; default: standard output");
  const char* const examples[] = {"create patients --epsilon 2 --delta 1e-6 --data patients.csv",
                                  "list",
                                  "show patients",
                                  "release-unused patients",
                                  "accept-restore patients --spent 0.5",
                                  "verify model.npz",
                                  "backup ledger-copy.db",
                                  "export --out ledger.json"};
  for (std::size_t i = 0; i < commands.size(); ++i)
    commands[i].app->footer(fmt::format("\nExample:\n  eigenveil ledger {}", examples[i]));
  return commands;
}

}  // namespace eigenveil::app
