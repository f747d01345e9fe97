#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eigenveil/planner/forecast.hpp"
#include "eigenveil/release/line_chart.hpp"

namespace eigenveil::bench {

/// Where an experiment writes NAME.svg and NAME.md, and how many seeds it averages over.
struct Setting {
  std::string out;
  int seeds;
  int threads;
};

/// Independent rows of a public model on the lattice, with their true components.
struct Drawn {
  BoundedRows rows;
  Matrix truth;
};
Drawn draw(const PublicModel& model, int seed, int threads);

inline Budget budget(double epsilon, double delta, Calibration calibration = Calibration::kTight) {
  return {*Epsilon::of(epsilon), *Delta::of(delta), Adjacency::kReplaceOne, Accounting::kTight, calibration};
}

/// One fit on rows; without noise if the budget is empty.
PcaFit run(const PcaProgram& program, const std::optional<Budget>& budget, const BoundedRows& rows, int seed);

/// sin^2 of one fit.
double error_of(const PcaProgram& program, const std::optional<Budget>& budget, const Drawn& drawn, int seed);

/// A table in Markdown, printed as it grows and written with the charts at the end.
class Table {
 public:
  Table(std::string name, std::string title, std::vector<std::string> columns);
  void add(const std::vector<std::string>& cells);
  void finish(const Setting& setting, const std::vector<LineChart>& charts);

 private:
  std::string name_;
  std::string text_;
};

std::string number(double value);

/// Slope of log y against log x by least squares.
double slope(const std::vector<std::pair<double, double>>& points);

// The experiments: one file each.
void adaptive(const Setting& setting);
void sparse(const Setting& setting);
void slopes(const Setting& setting);
void coherence(const Setting& setting);
void spiked(const Setting& setting);
void real_data(const Setting& setting);
void two_views(const Setting& setting);

}  // namespace eigenveil::bench
