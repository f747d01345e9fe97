// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "selection.hpp"

namespace eigenveil::data {

/// A source that reads the chosen columns alone, text where a public list says what it may be, and ids of people of any
/// text.
class ColumnarSource : public RowSource {
 public:
  /// Called once at most, before the first row. Without it all columns are read, as numbers. `name` begins messages.
  virtual Status choose(Selection selection, BadRows bad_rows, const std::string& name) = 0;
};

/// The chosen columns of any source.
Result<std::unique_ptr<RowSource>> chosen_from(std::unique_ptr<RowSource> source, std::size_t width,
                                               Selection selection, BadRows bad_rows, const std::string& name);

}  // namespace eigenveil::data
