// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace eigenveil {

/// How much of a foreign text is shown, in bytes.
constexpr std::size_t kShownBytes = 200;

/// A foreign text (a name, a purpose, a label, a class) as one piece of one line: for terminals, prompts and logs.
///
/// Letters, marks, digits, punctuation and symbols of every script stay as they are. Everything else becomes an
/// escape in ASCII: bytes that are no UTF-8 and control characters \xNN; line and paragraph separators, bidirectional
/// controls, zero-width and other invisible characters, unassigned and private code points, and spaces other than
/// U+0020 \u{NNNN}; a backslash \\. So no text moves the cursor, begins a line, changes the order of others or hides,
/// and different texts look different. Of combining marks at most four follow a letter. What is longer than `most`
/// bytes when written so is cut between characters, and says how many bytes of it are left out.
std::string printable(std::string_view text, std::size_t most = kShownBytes);

/// Likewise for a text of a page, of any length: line feeds, tabs and backslashes stay as they are, so that a program
/// or a command is shown as it is written.
std::string printable_lines(std::string_view text);

/// `printable` in single quotes; those inside become \'.
std::string quote(std::string_view text, std::size_t most = kShownBytes);

}  // namespace eigenveil
