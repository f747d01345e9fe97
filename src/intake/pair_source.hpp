// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "eigenveil/intake/pairs.hpp"

namespace eigenveil {

/// A view that can be read piece by piece as feature vectors. What becomes of a row that has none is said when a view
/// is opened: it is refused, or all its features are NaN.
class View {
 public:
  virtual ~View() = default;
  virtual std::size_t features() const = 0;
  virtual std::optional<std::size_t> rows_announced() const = 0;
  virtual double progress() const = 0;
  /// Up to `most` further rows; none: the end.
  virtual Result<RowMajorMatrix> next(std::size_t most) = 0;
  /// Moves over that many rows, or to the end, without encoding them.
  virtual Status skip(std::size_t rows) = 0;
};

/// Images that are open, and the encoder that fits them.
struct OpenedImages {
  std::unique_ptr<RowSource> rows;
  ImageEncoder encoder;
};
Result<OpenedImages> images_of(const std::string& path, const EncoderChoices& choices, int threads,
                               BadRows bad_rows = BadRows::kError);

/// Images, encoded, and then seen through a public basis if there is one by the time they are read.
std::unique_ptr<View> image_view(std::unique_ptr<RowSource> rows, const std::string& path, const ImageEncoder& encoder,
                                 const std::optional<PublicBasis>& basis, int threads,
                                 BadRows bad_rows = BadRows::kError);
/// Vectors, each made of unit length. `fields`: how many numbers a line of CSV has, if that is stated.
Result<std::unique_ptr<View>> vector_view(const std::string& path, std::size_t fields = 0,
                                          BadRows bad_rows = BadRows::kError);
Result<std::unique_ptr<View>> vector_view(std::unique_ptr<RowSource> source, const std::string& name,
                                          BadRows bad_rows = BadRows::kError);
/// Captions, encoded.
Result<std::unique_ptr<View>> caption_view(const std::string& path, const TextEncoder& encoder,
                                           BadRows bad_rows = BadRows::kError);
/// The class of each row, checked: one column.
Result<std::unique_ptr<View>> label_view(const std::string& path, std::size_t classes, const std::string& names,
                                         BadRows bad_rows = BadRows::kError);

/// Refuses views that announce unequal numbers of rows.
Status check_announced(const View& first, const View& second, const std::string& first_name,
                       const std::string& second_name);

/// Two views side by side: rows of the first's features, then the second's. Unequal numbers of rows are refused.
class PairSource final : public RowSource {
 public:
  PairSource(std::unique_ptr<View> first, std::unique_ptr<View> second, std::string first_name,
             std::string second_name);
  const std::vector<std::string>& columns() const override { return names_; }
  Status next(RawBatch& batch, std::size_t max_rows) override;
  Status skip(std::size_t rows) override;
  std::optional<std::size_t> rows_announced() const override { return first_->rows_announced(); }
  double progress() const override { return first_->progress(); }
  std::size_t first_features() const { return first_->features(); }

 private:
  std::unique_ptr<View> first_, second_;
  std::string first_name_, second_name_;
  std::vector<std::string> names_;
  std::size_t done_ = 0;
};

}  // namespace eigenveil
