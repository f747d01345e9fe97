// SPDX-License-Identifier: Apache-2.0
#include "chosen_source.hpp"

#include <fmt/format.h>

#include "columnar_source.hpp"
#include "people.hpp"

namespace eigenveil::data {

Status ChosenSource::next(RawBatch& batch, std::size_t max_rows) {
  EIGENVEIL_TRY(source().next(whole_, max_rows));
  const std::size_t width = width_, chosen = selection_.positions.size();
  // A source of somebody else's: what it says of its own size is not believed.
  if (whole_.rows > max_rows || whole_.values.size() != whole_.rows * width)
    return bad_input(fmt::format("{}: the source gave {} rows in {} numbers, expected at most {} rows of {}", name_,
                                 whole_.rows, whole_.values.size(), max_rows, width));
  batch.first_row = whole_.first_row;
  batch.rows = whole_.rows;
  batch.values.resize(batch.rows * chosen);
  for (std::size_t i = 0; i < batch.rows; ++i)
    for (std::size_t j = 0; j < chosen; ++j)
      batch.values[i * chosen + j] = whole_.values[i * width + selection_.positions[j]];
  return map_categories(batch.values.data(), batch.rows, batch.first_row, selection_, bad_rows_, name_);
}

Result<std::unique_ptr<RowSource>> chosen_from(std::unique_ptr<RowSource> source, std::size_t width,
                                               Selection selection, BadRows bad_rows, const std::string& name) {
  if (auto* columnar = dynamic_cast<ColumnarSource*>(source.get())) {
    EIGENVEIL_TRY(columnar->choose(std::move(selection), bad_rows, name));
    return source;
  }
  const auto person = selection.person ? std::optional(selection.whose) : std::nullopt;
  const double below = source->exact_below();
  return taking_person(
      std::make_unique<ChosenSource>(std::move(source), width, with_person_last(std::move(selection)), bad_rows, name),
      person, name, bad_rows, below);
}

}  // namespace eigenveil::data
