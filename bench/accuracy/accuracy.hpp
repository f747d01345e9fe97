// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/forecast/measure.hpp"
#include "eigenveil/forecast/spectrum_model.hpp"
#include "eigenveil/release/line_chart.hpp"

namespace eigenveil::bench {

/// Where an experiment writes NAME.svg and NAME.md, and how many seeds it averages over.
struct Setting {
  std::string out;
  int seeds;
  int threads;
  std::string only = {};  ///< verdicts: rows of the table that begin so; papers: the number of one
};

/// Independent rows of a public model on the lattice, with their true components.
struct Drawn {
  BoundedRows rows;
  Matrix truth;
};
Drawn draw(const SpectrumModel& model, int seed, int threads);

inline Budget budget(double epsilon, double delta) { return {*Epsilon::of(epsilon), *Delta::of(delta)}; }

/// One fit on rows; without noise if the budget is empty.
PcaFit run(PcaProgram program, const std::optional<Budget>& budget, const BoundedRows& rows, int seed,
           Calibration calibration = Calibration::kTight);

/// sin^2 of one fit.
double error_of(const PcaProgram& program, const std::optional<Budget>& budget, const Drawn& drawn, int seed,
                Calibration calibration = Calibration::kTight);

/// The program that is forecast to be the best of these.
PcaProgram best_program(const std::vector<PcaProgram>& programs, const Sample& sample, const Budget& budget,
                        std::size_t rows);

/// A table in Markdown, printed as it grows and written with the charts at the end.
class Table {
 public:
  Table(std::string name, std::string title, std::vector<std::string> columns);
  void add(const std::vector<std::string>& cells);
  void finish(const Setting& setting, const std::vector<LineChart>& charts);
  const std::string& text() const { return text_; }

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
void regress(const Setting& setting);
void verdicts(const Setting& setting);
void noise(const Setting& setting);
void people(const Setting& setting);
void radius(const Setting& setting);
void papers(const Setting& setting);

}  // namespace eigenveil::bench
