// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "database.hpp"
#include "filter.hpp"

namespace eigenveil::ledger {

/// A data set as its rows tell it.
struct Account {
  std::int64_t id;
  Filter filter;
  Events charged;        ///< of every reservation but the returned ones
  DatasetStatus status;  ///< complete after `report`
};

/// All inside the caller's transaction.
Result<Account> load_account(const Database& db, const std::string& name);
Result<std::int64_t> insert_reservation(const Database& db, const Account& account, const PrivacyPlan& plan,
                                        const std::string& purpose);

/// Refuses the plan, or inserts it as a reservation of the data set, to which the files belong from then on.
Result<std::int64_t> charge(const Database& db, const Payer& payer, const PrivacyPlan& plan,
                            const std::string& purpose);
Result<PrivacyPlan> load_plan(const Database& db, std::int64_t reservation);

/// What a data set's column `unit` says: the column of the person it protects; empty: it protects a row.
std::string unit_of(const std::string& person);
std::string person_of_unit(const std::string& unit);

/// Refuses a data set of a restored ledger, until that is accepted.
Status refuse_frozen(const Account& account);
/// A data set that was made after the copy was taken is gone with what it spent: nobody gets a new one unawares.
Status refuse_while_frozen(const Database& db);

/// Fills in what has been spent and what remains.
DatasetStatus report(const Account& account);

}  // namespace eigenveil::ledger
