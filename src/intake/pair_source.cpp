// SPDX-License-Identifier: Apache-2.0
#include "pair_source.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "../encoders/in_order.hpp"
#include "eigenveil/base/parallel.hpp"
#include "eigenveil/data/image_folder.hpp"

namespace eigenveil {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Rows as a source has them, and which of them lack a value.
struct Piece {
  RowMajorMatrix rows;
  std::vector<Eigen::Index> missing;
};

Result<Piece> read_piece(RowSource& source, std::size_t most, const std::string& path, const char* what,
                         BadRows bad_rows) {
  RawBatch batch;
  if (const auto read = source.next(batch, most); !read) return read.error();
  const Eigen::Index columns = source.columns().size();
  Piece piece{Eigen::Map<const RowMajorMatrix>(batch.values.data(), batch.rows, columns), {}};
  for (Eigen::Index i = 0; i < piece.rows.rows(); ++i) {
    if (piece.rows.row(i).allFinite()) continue;
    if (bad_rows == BadRows::kError)
      return bad_input(
          fmt::format("{}: {} {} has a value that is missing, NaN or infinite", path, what, batch.first_row + i + 1));
    piece.missing.push_back(i);
  }
  return piece;
}

// Z = X B, in products of one shape on one thread each: a row's digits then depend neither on its neighbours nor on
// who computes them.
RowMajorMatrix seen_through(const Matrix& B, const RowMajorMatrix& X, int threads) {
  constexpr Eigen::Index kChunk = 96;
  const auto d = static_cast<int>(B.rows()), k = static_cast<int>(B.cols());
  RowMajorMatrix seen(X.rows(), B.cols());
  Tickets chunks((X.rows() + kChunk - 1) / kChunk);
  on_threads(threads, [&] {
    RowMajorMatrix rows = RowMajorMatrix::Zero(kChunk, B.rows()), products(kChunk, B.cols());
    for (auto chunk = chunks.next(); chunk; chunk = chunks.next()) {
      const Eigen::Index first = *chunk * kChunk;
      const Eigen::Index count = std::min(kChunk, X.rows() - first);
      rows.topRows(count) = X.middleRows(first, count);
      // Z^T = B^T X^T
      cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, k, static_cast<int>(kChunk), d, 1.0, B.data(), d,
                  rows.data(), d, 0.0, products.data(), k);
      seen.middleRows(first, count) = products.topRows(count);
    }
  });
  return seen;
}

class SourceView : public View {
 public:
  SourceView(std::unique_ptr<RowSource> source, std::string path, BadRows bad_rows)
      : source_(std::move(source)), path_(std::move(path)), bad_rows_(bad_rows) {}
  std::size_t features() const override { return source_->columns().size(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }
  Status skip(std::size_t rows) override { return source_->skip(rows); }

 protected:
  std::unique_ptr<RowSource> source_;
  std::string path_;
  BadRows bad_rows_;
};

class ImageView final : public SourceView {
 public:
  ImageView(std::unique_ptr<RowSource> source, std::string path, BadRows bad_rows, const ImageEncoder& encoder,
            const std::optional<PublicBasis>& basis, int threads)
      : SourceView(std::move(source), std::move(path), bad_rows), encoder_(encoder), basis_(basis), threads_(threads) {}
  std::size_t features() const override { return basis_ ? basis_->basis.cols() : encoder_.features(); }
  Result<RowMajorMatrix> next(std::size_t most) override {
    constexpr std::size_t kBlockBytes = std::size_t{64} << 20;
    const std::size_t row = sizeof(double) * std::max(encoder_.pixels(), encoder_.features());
    most = std::min(most, std::clamp<std::size_t>(kBlockBytes / row, 1, 1000));
    auto piece = read_piece(*source_, most, path_, "image", bad_rows_);
    if (!piece) return piece.error();
    RowMajorMatrix& images = piece->rows;
    if (images.rows() == 0) return images;
    for (const Eigen::Index i : piece->missing) images.row(i).setConstant(encoder_.options().lower);
    auto encoded = encoder_.encode(images.data(), images.rows(), threads_);
    if (!encoded) return encoded;
    if (basis_) {
      encoded->rowwise() -= basis_->mean.transpose();
      *encoded = seen_through(basis_->basis, *encoded, threads_);
    }
    for (const Eigen::Index i : piece->missing) encoded->row(i).setConstant(kMissing);
    return encoded;
  }

 private:
  const ImageEncoder& encoder_;
  const std::optional<PublicBasis>& basis_;
  int threads_;
};

class VectorView final : public SourceView {
 public:
  using SourceView::SourceView;
  Result<RowMajorMatrix> next(std::size_t most) override {
    auto piece = read_piece(*source_, most, path_, "row", bad_rows_);
    if (!piece) return piece.error();
    RowMajorMatrix& rows = piece->rows;
    for (const Eigen::Index i : piece->missing) rows.row(i).setZero();
    for (Eigen::Index i = 0; i < rows.rows(); ++i)
      make_unit({rows.row(i).data(), static_cast<std::size_t>(rows.cols())});
    for (const Eigen::Index i : piece->missing) rows.row(i).setConstant(kMissing);
    return std::move(rows);
  }
};

class LabelView final : public SourceView {
 public:
  LabelView(std::unique_ptr<RowSource> source, std::string path, BadRows bad_rows, std::size_t classes,
            std::string names)
      : SourceView(std::move(source), std::move(path), bad_rows), classes_(classes), names_(std::move(names)) {}
  Result<RowMajorMatrix> next(std::size_t most) override {
    auto piece = read_piece(*source_, most, path_, "label", bad_rows_);
    if (!piece) return piece.error();
    RowMajorMatrix& rows = piece->rows;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const double label = rows(i, 0);
      if (label == std::floor(label) && label >= 0 && label < static_cast<double>(classes_)) continue;
      if (bad_rows_ == BadRows::kError)
        return bad_input(fmt::format("{}: label {} is {}, but {} names the classes 0 to {}", path_, done_ + i + 1,
                                     label, names_, classes_ - 1));
      rows(i, 0) = kMissing;
    }
    done_ += rows.rows();
    return std::move(rows);
  }
  Status skip(std::size_t rows) override {
    done_ += rows;
    return source_->skip(rows);
  }

 private:
  std::size_t classes_;
  std::string names_;
  std::size_t done_ = 0;
};

class CaptionView final : public View {
 public:
  CaptionView(std::vector<std::string> lines, const TextEncoder& encoder, std::string path, BadRows bad_rows)
      : lines_(std::move(lines)), encoder_(encoder), path_(std::move(path)), bad_rows_(bad_rows) {}
  std::size_t features() const override { return encoder_.dimensions(); }
  std::optional<std::size_t> rows_announced() const override { return lines_.size(); }
  double progress() const override {
    return static_cast<double>(done_) / static_cast<double>(std::max<std::size_t>(1, lines_.size()));
  }
  Result<RowMajorMatrix> next(std::size_t most) override {
    const std::size_t count = std::min(most, lines_.size() - done_);
    auto rows = encoder_.encode(
        {lines_.data() + done_, count}, [&](std::size_t i) { return fmt::format("{}, line {}", path_, done_ + i + 1); },
        bad_rows_);
    if (rows) done_ += count;
    return rows;
  }
  Status skip(std::size_t rows) override {
    done_ += std::min(rows, lines_.size() - done_);
    return {};
  }

 private:
  std::vector<std::string> lines_;
  const TextEncoder& encoder_;
  std::string path_;
  BadRows bad_rows_;
  std::size_t done_ = 0;
};

bool runs_a_module(const EncoderChoices& choices) {
  const std::string last = joined_encoders(choices.image_encoder).back();
  return last != "scatter" && last != "pixels";
}

// The files know their shape. A module gets three channels, or one if it refuses them. Which of them must not depend on
// the images: one in colour among many would then change how all others are encoded.
Result<ImageEncoder> encoder_for_folder(const std::string& path, const ImageFolder& folder,
                                        const EncoderChoices& choices, int threads) {
  if (choices.image_shape && *choices.image_shape != std::pair{folder.height, folder.width})
    return bad_input(
        fmt::format("the images of {} are {}x{} (height x width), but `image_shape` or the model says "
                    "{}x{}",
                    path, folder.height, folder.width, choices.image_shape->first, choices.image_shape->second));
  if (folder.images == 1 && !choices.image_shape)
    return bad_input(
        fmt::format("{}: one image alone does not say how large images are: state it with `image_shape` HxW", path));
  const auto make = [&](std::size_t channels) {
    return ImageEncoder::make({choices.image_encoder, folder.height, folder.width, channels, choices.lower,
                               choices.upper, choices.image_sha256, threads, choices.kept});
  };
  if (choices.channels) return make(*choices.channels);
  if (!runs_a_module(choices)) return make(1);
  auto coloured = make(3);
  if (coloured) return coloured;
  auto grey = make(1);
  return grey ? grey : coloured;
}

// Rows of so many numbers are images of this shape.
Result<ImageEncoder> encoder_for_rows(const std::string& path, std::size_t pixels, const EncoderChoices& choices,
                                      int threads) {
  const auto root = [](std::size_t n) {
    return static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(n))));
  };
  const bool colours =
      pixels % 3 == 0 && (choices.image_shape ? choices.image_shape->first * choices.image_shape->second * 3 == pixels
                                              : root(pixels) * root(pixels) != pixels);
  const std::size_t channels = colours ? 3 : 1;
  const std::size_t side = root(pixels / channels);
  const auto [height, width] = choices.image_shape.value_or(std::pair{side, side});
  if (height * width * channels != pixels)
    return usage_error(
        choices.image_shape
            ? fmt::format("`image_shape` {}x{} has {} pixels, but the images of {} have {}", height, width,
                          height * width, path, pixels)
            : fmt::format("{}: {} pixels are no square; say which shape they have with `image_shape` HxW", path,
                          pixels));
  return ImageEncoder::make({choices.image_encoder, height, width, channels, choices.lower, choices.upper,
                             choices.image_sha256, threads, choices.kept});
}

}  // namespace

Result<OpenedImages> images_of(const std::string& path, const EncoderChoices& choices, int threads, BadRows bad_rows) {
  SourceOptions options{.header = HeaderRule::kNo, .bad_rows = bad_rows};
  options.threads = threads;
  options.image_shape = choices.image_shape;
  const auto folder = EIGENVEIL_TRY(image_folder(path, options));
  if (!folder) {
    auto rows = EIGENVEIL_TRY(open_source(path, options));
    auto encoder = EIGENVEIL_TRY(encoder_for_rows(path, rows->columns().size(), choices, threads));
    return OpenedImages{std::move(rows), std::move(encoder)};
  }
  auto encoder = EIGENVEIL_TRY(encoder_for_folder(path, *folder, choices, threads));
  options.colour = encoder.options().channels == 3;
  options.image_shape = {encoder.options().height, encoder.options().width};
  auto rows = EIGENVEIL_TRY(open_source(path, options));
  if (rows->columns().size() != encoder.pixels())
    return bad_input(fmt::format("{}: images have {} pixels, expected {}{}x{}", path, rows->columns().size(),
                                 options.colour ? "3x" : "", encoder.options().height, encoder.options().width));
  return OpenedImages{std::move(rows), std::move(encoder)};
}

std::unique_ptr<View> image_view(std::unique_ptr<RowSource> rows, const std::string& path, const ImageEncoder& encoder,
                                 const std::optional<PublicBasis>& basis, int threads, BadRows bad_rows) {
  return std::make_unique<ImageView>(std::move(rows), path, bad_rows, encoder, basis, threads);
}

Result<std::unique_ptr<View>> vector_view(const std::string& path, std::size_t fields, BadRows bad_rows) {
  return vector_view(
      EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo, .fields = fields, .bad_rows = bad_rows})), path,
      bad_rows);
}

Result<std::unique_ptr<View>> vector_view(std::unique_ptr<RowSource> source, const std::string& name,
                                          BadRows bad_rows) {
  return std::unique_ptr<View>(std::make_unique<VectorView>(std::move(source), name, bad_rows));
}

Result<std::unique_ptr<View>> label_view(const std::string& path, std::size_t classes, const std::string& names,
                                         BadRows bad_rows) {
  auto source = EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo, .fields = 1, .bad_rows = bad_rows}));
  if (source->columns().size() != 1)
    return bad_input(
        fmt::format("{}: labels are one number per row, but there are {}", path, source->columns().size()));
  return std::unique_ptr<View>(std::make_unique<LabelView>(std::move(source), path, bad_rows, classes, names));
}

Result<std::unique_ptr<View>> caption_view(const std::string& path, const TextEncoder& encoder, BadRows bad_rows) {
  auto lines = EIGENVEIL_TRY(read_texts(path, bad_rows));
  return std::unique_ptr<View>(std::make_unique<CaptionView>(std::move(lines), encoder, path, bad_rows));
}

PairSource::PairSource(std::unique_ptr<View> first, std::unique_ptr<View> second, std::string first_name,
                       std::string second_name)
    : first_(std::move(first)),
      second_(std::move(second)),
      first_name_(std::move(first_name)),
      second_name_(std::move(second_name)) {
  for (std::size_t i = 1; i <= first_->features() + second_->features(); ++i) names_.push_back(std::to_string(i));
}

Status check_announced(const View& first, const View& second, const std::string& first_name,
                       const std::string& second_name) {
  const auto one = first.rows_announced(), two = second.rows_announced();
  if (!one || !two || *one == *two) return {};
  return bad_input(
      fmt::format("{} has {} rows but {} has {}: every pair needs both", first_name, *one, second_name, *two));
}

Status PairSource::skip(std::size_t rows) {
  EIGENVEIL_TRY(first_->skip(rows));
  EIGENVEIL_TRY(second_->skip(rows));
  done_ += rows;
  return {};
}

Status PairSource::next(RawBatch& batch, std::size_t max_rows) {
  batch.first_row = done_;
  batch.rows = 0;
  batch.values.clear();
  const auto left = EIGENVEIL_TRY(first_->next(max_rows));
  // At the end of the first view the second must have ended too.
  const std::size_t wanted = std::max<Eigen::Index>(1, left.rows());
  RowMajorMatrix right(wanted, second_->features());
  Eigen::Index got = 0;
  while (got < right.rows()) {
    const auto piece = EIGENVEIL_TRY(second_->next(right.rows() - got));
    if (piece.rows() == 0) break;
    right.middleRows(got, piece.rows()) = piece;
    got += piece.rows();
  }
  if (got != left.rows())
    return bad_input(fmt::format("{} has {} than {}: every pair needs both", second_name_,
                                 got > left.rows() ? "more rows" : "fewer rows", first_name_));
  const Eigen::Index d1 = left.cols(), d2 = right.cols();
  batch.rows = got;
  batch.values.resize(batch.rows * (d1 + d2));
  Eigen::Map<RowMajorMatrix> rows(batch.values.data(), got, d1 + d2);
  rows.leftCols(d1) = left;
  rows.rightCols(d2) = right.topRows(got);
  done_ += batch.rows;
  return {};
}

}  // namespace eigenveil
