// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"

namespace eigenveil::ledger {

/// All inside the caller's transaction.

/// Refuses files that belong to other budgets than the data set's: none is left for another by naming that.
Status refuse_other_owners(const Database& db, const Payer& payer);
/// Of a new data set the file that is called as its people are (WHO.txt, for the person WHO) is their list.
Status name_people(FileKeys& files, const std::string& person);
/// Refuses a list of people (a file whose lines say whose the pairs are) that is another one than the data set knows:
/// with other ids a person's rows would be several people's, for the price of one. Which file is the list is a fact of
/// its own, known from the beginning or, where the data set has no files, from the first charge on.
Status refuse_other_people(const Database& db, const Account& account, const Payer& payer);
/// Files, what lies in them where they are folders, and the list of people.
Status bind_files(const Database& db, std::int64_t dataset, const FileKeys& files);

}  // namespace eigenveil::ledger
