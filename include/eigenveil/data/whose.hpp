// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "eigenveil/data/person.hpp"

namespace eigenveil {

/// Whose the malformed lines are of which nobody knows it: one person's, all of them. Two people who are taken for
/// one cost at most twice what one does; one who is taken for m costs m times as much.
inline constexpr PersonId kUnreadPerson{0, 1};

/// The id on a line of a list of ids: blanks around it do not count, and what is missing in a CSV file is missing here.
PersonId person_of_line(std::string_view line, const PersonColumn::Key& key);

}  // namespace eigenveil
