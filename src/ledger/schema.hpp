// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil::ledger {

constexpr int kApplicationId = 0x45564c47;  // "EVLG"
constexpr int kFormat = 5;
constexpr int kSealedFormat = 3;  ///< from here on rows have checksums, and the file a key

/// The tables as they were at first, and what each later format added.
extern const char* const kFirstFormat;
extern const char* const kSecondFormat;
extern const char* const kThirdFormat;
extern const char* const kFourthFormat;
extern const char* const kFifthFormat;

}  // namespace eigenveil::ledger
