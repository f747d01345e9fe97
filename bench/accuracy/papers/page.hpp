// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../accuracy.hpp"

namespace eigenveil::bench {

/// What `bench_accuracy papers` writes of one paper: several tables and sentences in FOLDER/NAME.md, charts in
/// NAME.svg.
class Page {
 public:
  Page(std::string name, const std::string& title);
  void say(const std::string& paragraph);
  void add(const Table& table);
  void add(LineChart chart) { charts_.push_back(std::move(chart)); }
  /// What could not be measured here: said at once, and counted at the end of the page.
  void skip(const std::string& what);
  void finish(const Setting& setting) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<LineChart> charts_;
  std::vector<std::string> skipped_;
};

// The papers: one file each.
void paper_000(const Setting& setting);
void paper_001(const Setting& setting);
void paper_002(const Setting& setting);
void paper_004(const Setting& setting);

}  // namespace eigenveil::bench
