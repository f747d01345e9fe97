// SPDX-License-Identifier: Apache-2.0
// The papers' own figures and rates, one page each: bench_accuracy papers [--only 000|001|002|004] [--out FOLDER].
// 003 has a program of its own: bench/accuracy/clip/run.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "page.hpp"

namespace eigenveil::bench {

Page::Page(std::string name, const std::string& title) : name_(std::move(name)) {
  text_ = fmt::format("# {}\n\n`bench_accuracy papers --only {}`.\n", title, name_.substr(name_.size() - 3));
}

void Page::say(const std::string& paragraph) {
  fmt::print("\n{}\n", paragraph);
  text_ += "\n" + paragraph + "\n";
}

void Page::add(const Table& table) { text_ += "\n" + table.text(); }

void Page::skip(const std::string& what) {
  fmt::print("SKIPPED: {}\n", what);
  skipped_.push_back(what);
}

void Page::finish(const Setting& setting) const {
  std::string text = text_;
  if (!charts_.empty()) text += fmt::format("\n![{0}]({0}.svg)\n", name_);
  if (!skipped_.empty()) text += fmt::format("\nSkipped, {}: {}.\n", skipped_.size(), fmt::join(skipped_, "; "));
  fmt::print("\n{}: {} skipped\n", name_, skipped_.size());
  if (setting.out.empty()) return;
  const std::filesystem::path folder = setting.out;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (name_ + ".md")) << text;
  if (!charts_.empty()) std::ofstream(folder / (name_ + ".svg")) << line_charts_svg(charts_);
  fmt::print("written: {}/{}.md{}\n", setting.out, name_, charts_.empty() ? "" : " and .svg");
}

void papers(const Setting& setting) {
  const std::vector<std::pair<std::string, void (*)(const Setting&)>> all = {
      {"000", paper_000}, {"001", paper_001}, {"002", paper_002}, {"004", paper_004}};
  bool any = false;
  for (const auto& [number, run] : all)
    if (setting.only.empty() || setting.only == number) {
      run(setting);
      any = true;
    }
  if (!any) throw std::runtime_error(fmt::format("papers are 000, 001, 002 and 004, not '{}'", setting.only));
}

}  // namespace eigenveil::bench
