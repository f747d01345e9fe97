// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace eigenveil::federation {

constexpr std::uint32_t kWireVersion = 2;
constexpr const char* kSpareRounds = "spare rounds";
constexpr std::size_t kStudyBytes = 16;
constexpr std::size_t kMostSites = 64;

/// A new study's number, from the kernel.
std::string draw_study();
/// As people, file names and ledgers have it: 32 hexadecimal digits.
std::string study_text(const std::string& study);

/// What speaking another version is answered with.
std::string other_version(std::uint32_t theirs);

/// What the coordinator signs of a proposal, and a site of its accept.
std::string proposal_statement(const std::string& proposal_hash);
std::string accept_statement(const std::string& statement);

}  // namespace eigenveil::federation
