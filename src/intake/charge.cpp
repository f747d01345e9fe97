// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/charge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "eigenveil/privacy/least_delta.hpp"
#include "eigenveil/privacy/noisy_vector.hpp"

namespace eigenveil {
namespace {

// A data file without a data set of its own is recorded under a keyed hash of its path; rows that are in no file, all
// of them under one name.
std::string record_of(const Ledger& ledger, const PrivateFiles& data, const PrivacyPlan& plan) {
  constexpr std::size_t kLongestColumn = 20;
  constexpr std::size_t kDigits = 16;
  const std::string of =
      plan.person.empty() ? "" : fmt::format(", people by '{}'", plan.person.substr(0, kLongestColumn));
  const std::string what = data.paths().empty() ? std::string(kRowsInMemory)
                                                : "file " + ledger.path_key(data.paths().front()).substr(0, kDigits);
  return fmt::format("{} ({}{})", what, name(plan.adjacency), of);
}

std::string path_of(const PrivacyOptions& privacy) {
  return privacy.ledger.empty() ? Ledger::default_path() : privacy.ledger;
}

// Where it is missing.
bool may_be_made(const PrivacyOptions& privacy) {
  return path_of(privacy) == Ledger::default_path() && privacy.dataset.empty();
}

struct Account {
  Ledger ledger;
  Payer payer;
  bool limited;
  double spent;  // epsilon, before this release
};

// The data set that was named, the one that the files belong to, or else a record without a limit.
Result<std::string> choose_dataset(Ledger& ledger, const PrivacyOptions& privacy, const PrivateFiles& data,
                                   const FileKeys& files, const PrivacyPlan& plan) {
  if (!privacy.dataset.empty()) return privacy.dataset;
  const auto budgets = EIGENVEIL_TRY(ledger.budgets_of(files));
  if (budgets.size() > 1)
    return budget_refused(
        fmt::format("This data belongs to several data sets with a budget: {}. Say which one pays: "
                    "`dataset` NAME",
                    fmt::join(budgets, ", ")));
  if (budgets.size() == 1) return *budgets.begin();
  std::string record = record_of(ledger, data, plan);
  EIGENVEIL_TRY(
      ledger.create_if_missing({.name = record, .limit = {}, .adjacency = plan.adjacency, .person = plan.person}));
  return record;
}

Result<Account> account_of(const PrivacyOptions& privacy, const PrivateFiles& data, const PrivacyPlan& plan) {
  EIGENVEIL_TRY(check_payer(privacy, data));
  std::vector<std::string> lasting = data.paths();
  std::erase_if(lasting, is_pipe);
  auto ledger = EIGENVEIL_TRY(ledger_of(privacy));
  const auto known = EIGENVEIL_TRY(ledger.has_files());
  auto files =
      EIGENVEIL_TRY(!privacy.dataset.empty() || known ? ledger.hash_files(lasting) : Result<FileKeys>(FileKeys{}));
  for (FileKeys::File& file : files.files) file.lists_people = file.named == data.people();
  const auto dataset = EIGENVEIL_TRY(choose_dataset(ledger, privacy, data, files, plan));
  const auto status = EIGENVEIL_TRY(ledger.show(dataset));
  return Account{std::move(ledger), {dataset, std::move(files)}, status.budget.limit.has_value(), status.spent_epsilon};
}

SecureRandom random_for(const RunOptions& run) {
  return run.insecure_seed ? SecureRandom::insecure(*run.insecure_seed) : SecureRandom::from_kernel();
}

Charge charge_of(CertifiedPlan certified, const SecureRandom& random, std::string dataset, bool limited) {
  return {std::move(certified.plan), certified.epsilon, random.secure(), std::move(dataset), {}, limited};
}

// What the ledger says of the reservation that was just made.
Result<LedgerEntry> entry_of(Account& account, std::int64_t id, const PrivacyOptions& privacy) {
  const auto status = EIGENVEIL_TRY(account.ledger.show(account.payer.dataset));
  const auto generation = EIGENVEIL_TRY(account.ledger.generation());
  LedgerEntry entry{.id = id,
                    .ledger = std::filesystem::absolute(path_of(privacy)).string(),
                    .unit = status.budget.person.empty() ? "row" : "person",
                    .generation = generation,
                    .limit = status.budget.limit,
                    .spent_before = account.spent,
                    .spent_after = status.spent_epsilon,
                    .remaining = status.remaining_epsilon};
  for (const ReservationRecord& record : status.reservations)
    if (record.id == id) entry.created = record.created, entry.purpose = record.purpose, entry.mark = record.mark;
  return entry;
}

// What was charged to whom, for whoever stops the run from here on.
std::string reserved(const std::string& what, const std::string& dataset) {
  return what.empty() ? "budget reserved" : fmt::format("budget reserved: {} of '{}'", what, dataset);
}

// What the samplers cannot draw is refused before it is charged.
Status check_drawable(const PrivacyPlan& plan, Sensitivity largest) {
  for (const PrivacyEvent& event : plan.events) {
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      EIGENVEIL_TRY(GaussianMechanism::noise_for(largest, gaussian->mu));
    }
    if (const auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism)) {
      EIGENVEIL_TRY(GaussianMechanism::noise_for(NoisyVector::sensitivity(), 1 / poisson->sigma));
    }
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) EIGENVEIL_TRY(SparseVector::check(pure->epsilon));
  }
  return {};
}

}  // namespace

Result<Ledger> ledger_of(const PrivacyOptions& privacy) {
  return may_be_made(privacy) ? Ledger::open(path_of(privacy)) : Ledger::open_existing(path_of(privacy));
}

Status check_payer(const PrivacyOptions& privacy, const PrivateFiles& data) {
  if (!privacy.use_ledger) return {};
  // One that others hold now is waited for when it is charged.
  std::error_code ignored;
  if (!may_be_made(privacy) && !std::filesystem::exists(path_of(privacy), ignored)) EIGENVEIL_TRY(ledger_of(privacy));
  if (!data.people().empty() && is_pipe(data.people()))
    return usage_error(fmt::format(
        "{}: is a pipe, and a ledger cannot tell whether it lists the same people each time: give `person` as a file",
        data.people()));
  if (!privacy.dataset.empty()) return {};
  if (!data.told())
    return usage_error(
        "these rows are read from files that cannot be told, and a ledger cannot tell whose they are: say which data "
        "set pays with `dataset` NAME, or leave the ledger out with `no_ledger`");
  const auto pipe = std::find_if(data.paths().begin(), data.paths().end(), is_pipe);
  if (pipe == data.paths().end()) return {};
  return usage_error(
      fmt::format("{}: is a pipe, and a ledger cannot tell whose rows come through it: say which data set pays with "
                  "`dataset` NAME, or leave the ledger out with `no_ledger`",
                  *pipe));
}

Result<CertifiedPlan> certify(const PrivacyPlan& draft, Sensitivity largest, const PrivacyOptions& privacy) {
  if (draft.adjacency != privacy.adjacency)
    return internal_error("the plan is for other neighbours than the release says: nothing was charged");
  if (!draft.person.empty()) EIGENVEIL_TRY(check_delta_of_people(privacy.delta));
  const bool tight = privacy.calibration == Calibration::kTight;
  auto plan = EIGENVEIL_TRY(tight ? calibrate(draft, privacy.epsilon, privacy.delta, privacy.accounting)
                                  : Result<PrivacyPlan>(draft));
  const auto certified = EIGENVEIL_TRY(epsilon_of(plan.events, privacy.delta, privacy.accounting));
  if (tight && !(certified <= privacy.epsilon.value()))
    return internal_error(fmt::format("the plan is certified at epsilon {}, above the budget {}: nothing was charged",
                                      certified, privacy.epsilon.value()));
  EIGENVEIL_TRY(check_drawable(plan, largest));
  return CertifiedPlan{std::move(plan), certified};
}

Sensitivity largest_sensitivity(const Lattice& lattice) {
  const auto L = static_cast<double>(lattice.norm_bound());
  return Sensitivity(2 * L * L * kFilteredParts);  // a filtered sum, unfiltered
}

Result<ChargedPlan> charge_plan(const PrivacyPlan& draft, Sensitivity largest, const PrivacyOptions& privacy,
                                const RunOptions& run, const PrivateFiles& data, const std::string& purpose,
                                Observer& observer) {
  auto certified = EIGENVEIL_TRY(certify(draft, largest, privacy));
  observer.step("reserving budget");
  std::string dataset;
  bool limited = false;
  std::unique_ptr<Reservation> reservation;
  std::optional<LedgerEntry> entry;
  if (privacy.use_ledger) {
    auto account = EIGENVEIL_TRY(account_of(privacy, data, certified.plan));
    reservation = EIGENVEIL_TRY(account.ledger.reserve(account.payer, certified.plan, purpose));
    dataset = account.payer.dataset;
    limited = account.limited;
    // Seeded releases repeat byte for byte, and say nothing that changes.
    if (!run.insecure_seed) entry = EIGENVEIL_TRY(entry_of(account, reservation->entry(), privacy));
  } else {
    reservation = reserve_without_ledger(certified.plan);
  }
  observer.step(reserved(reservation->in_ledger() ? fmt::format("entry {}", reservation->entry()) : "", dataset));
  auto random = random_for(run);
  Charge charge = charge_of(std::move(certified), random, std::move(dataset), limited);
  charge.entry = std::move(entry);
  return ChargedPlan{std::move(charge), std::move(reservation), std::move(random)};
}

Result<ChargedWork> charge_work(CertifiedPlan certified, const PrivacyOptions& privacy, const RunOptions& run,
                                const PrivateFiles& data, const std::string& key, const WorkFacts& facts,
                                Observer& observer) {
  observer.step("reserving budget");
  std::string dataset;
  bool limited = false;
  std::optional<LedgerEntry> entry;
  Begun begun{work_without_ledger(certified.plan, key, facts), true};
  if (privacy.use_ledger) {
    auto account = EIGENVEIL_TRY(account_of(privacy, data, certified.plan));
    begun = EIGENVEIL_TRY(account.ledger.begin_work(account.payer, certified.plan, key, key, facts));
    dataset = account.payer.dataset;
    limited = account.limited;
    const auto status = EIGENVEIL_TRY(account.ledger.show(dataset));
    for (const ReservationRecord& record : status.reservations)
      if (record.purpose == key && !run.insecure_seed) entry = EIGENVEIL_TRY(entry_of(account, record.id, privacy));
  }
  observer.step(reserved(begun.work->in_ledger() ? key : "", dataset));
  auto random = random_for(run);
  Charge charge = charge_of(std::move(certified), random, std::move(dataset), limited);
  charge.entry = std::move(entry);
  return ChargedWork{std::move(charge), std::move(begun.work), begun.fresh, std::move(random)};
}

Budget budget_of(const PrivacyOptions& privacy) {
  return {privacy.epsilon, privacy.delta, privacy.adjacency, privacy.accounting};
}

}  // namespace eigenveil
