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

/// Both inside the caller's transaction.
Result<Account> load_account(const Database& db, const std::string& name);
Result<std::int64_t> insert_reservation(const Database& db, const Account& account, const PrivacyPlan& plan,
                                        const std::string& purpose);

/// Fills in what has been spent and what remains.
DatasetStatus report(const Account& account);

}  // namespace eigenveil::ledger
