// SPDX-License-Identifier: Apache-2.0
// What becomes of a ledger that came back as an older copy.
#include <fmt/format.h>

#include "account.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"

namespace eigenveil {

using ledger::Account;
using ledger::Filter;
using ledger::Statement;
using ledger::Transaction;

namespace {

constexpr double kUnlimitedDelta = 1e-6;  // as `show` reports

// Charged whatever the budget says: it has been spent.
Status charge_spent(const ledger::Database& db, Account& account, Epsilon spent) {
  const auto& limit = account.status.budget.limit;
  const Delta delta = limit ? limit->delta : *Delta::of(kUnlimitedDelta);
  const PrivacyPlan plan(account.status.budget.adjacency,
                         {{"spent before the ledger was restored", GaussianEvent{gaussian_mu(spent, delta)}}});
  if (account.charged.empty() && limit) {
    account.filter = ledger::choose_filter(*limit, plan.events);
    if (account.filter.kind == Filter::Kind::kOpen) account.filter.kind = Filter::Kind::kGaussian;  // all is gone
  }
  const auto id = EIGENVEIL_TRY(insert_reservation(db, account, plan, "restored"));
  return Statement(db, "UPDATE reservation SET state = 'answered' WHERE id = ?", id).finish();
}

}  // namespace

Status ledger::refuse_frozen(const Account& account) {
  if (!account.status.frozen) return {};
  return budget_refused(fmt::format(
      "This ledger is an older copy, and what data set '{0}' spent since it was taken is not in it. Nothing "
      "is charged to '{0}' until you say how much that was: `eigenveil ledger accept-restore`",
      account.status.budget.name));
}

Status ledger::refuse_while_frozen(const Database& db) {
  Statement row(db, "SELECT name FROM dataset JOIN frozen USING (id) ORDER BY name");
  const auto found = EIGENVEIL_TRY(row.step());
  if (!found) return {};
  return budget_refused(
      fmt::format("This ledger is an older copy. Accept that first, beginning with data set '{}' (`eigenveil ledger "
                  "accept-restore`); then make data sets that the copy lacks anew, with what is left "
                  "of their budget.",
                  row.text(0)));
}

Status Ledger::accept_restore(const std::string& name, std::optional<Epsilon> spent) {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  auto account = EIGENVEIL_TRY(ledger::load_account(*db_, name));
  if (!account.status.frozen)
    return usage_error(fmt::format("Data set '{}' is not frozen: there is no restore to accept", name));
  if (spent) EIGENVEIL_TRY(charge_spent(*db_, account, *spent));
  EIGENVEIL_TRY(Statement(*db_, "DELETE FROM frozen WHERE id = ?", account.id).finish());
  return transaction.commit();
}

Result<std::int64_t> Ledger::verify() {
  Transaction transaction(*db_);
  EIGENVEIL_TRY(transaction.begin());
  return transaction.head().rows;
}

}  // namespace eigenveil
