// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rows.hpp"

namespace eigenveil::test {

BoundedRows lattice_rows(const std::vector<LatticeRow>& rows, std::size_t columns, const RowsSetup& setup) {
  RowMajorMatrix values(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(columns));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j)
      values(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = rows[i][j];
  const bool classed = !setup.classes.empty();
  RowMajorMatrix raw = values;
  if (classed) {
    raw.conservativeResize(Eigen::NoChange, raw.cols() + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) raw(static_cast<Eigen::Index>(i), raw.cols() - 1) = setup.classes[i];
  }
  std::unique_ptr<RowSource> source = std::make_unique<MemorySource>(raw);
  if (!setup.people.empty()) source = std::make_unique<PeopledSource>(std::move(source), setup.people);
  std::vector<std::string> names(source->columns().begin(),
                                 source->columns().begin() + static_cast<std::ptrdiff_t>(columns));
  BoundingOptions options{.bound = *RowBound::of(std::ldexp(1.0, setup.bits)), .bits = setup.bits};
  options.threads = setup.threads;
  options.chunk_rows = setup.chunk_rows;
  options.memory_bytes = setup.memory_bytes;
  if (classed) options.class_column = columns;
  if (!setup.people.empty()) options.person = setup.rule;
  auto bounded = BoundedRows::read(*source, ColumnMap::identity(names), options);
  EXPECT_TRUE(bounded.ok()) << (bounded.ok() ? "" : bounded.error().message);
  return *std::move(bounded);
}

}  // namespace eigenveil::test
