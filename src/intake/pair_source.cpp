#include "pair_source.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <cmath>

#include "../encoders/in_order.hpp"
#include "eigenveil/base/parallel.hpp"
#include "eigenveil/data/image_folder.hpp"

namespace eigenveil {
namespace {

Result<RowMajorMatrix> read_piece(RowSource& source, std::size_t most, const std::string& path, const char* what) {
  RawBatch batch;
  if (const auto read = source.next(batch, most); !read) return read.error();
  const auto columns = static_cast<Eigen::Index>(source.columns().size());
  RowMajorMatrix rows =
      Eigen::Map<const RowMajorMatrix>(batch.values.data(), static_cast<Eigen::Index>(batch.rows), columns);
  for (Eigen::Index i = 0; i < rows.rows(); ++i)
    if (!rows.row(i).allFinite())
      return bad_input(fmt::format("{}: {} {} has a value that is missing or not finite", path, what,
                                   batch.first_row + static_cast<std::size_t>(i) + 1));
  return rows;
}

// Z = X B, in products of one shape on one thread each: a row's digits then depend neither on its neighbours nor on
// who computes them.
RowMajorMatrix seen_through(const Matrix& B, const RowMajorMatrix& X, int threads) {
  constexpr Eigen::Index kChunk = 96;
  const auto d = static_cast<int>(B.rows()), k = static_cast<int>(B.cols());
  RowMajorMatrix seen(X.rows(), B.cols());
  Tickets chunks(static_cast<std::size_t>((X.rows() + kChunk - 1) / kChunk));
  on_threads(threads, [&] {
    RowMajorMatrix rows = RowMajorMatrix::Zero(kChunk, B.rows()), products(kChunk, B.cols());
    for (auto chunk = chunks.next(); chunk; chunk = chunks.next()) {
      const Eigen::Index first = static_cast<Eigen::Index>(*chunk) * kChunk;
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
  SourceView(std::unique_ptr<RowSource> source, std::string path)
      : source_(std::move(source)), path_(std::move(path)) {}
  std::size_t features() const override { return source_->columns().size(); }
  std::optional<std::size_t> rows_announced() const override { return source_->rows_announced(); }
  double progress() const override { return source_->progress(); }
  Status skip(std::size_t rows) override { return source_->skip(rows); }

 protected:
  std::unique_ptr<RowSource> source_;
  std::string path_;
};

class ImageView final : public SourceView {
 public:
  ImageView(std::unique_ptr<RowSource> source, std::string path, const ImageEncoder& encoder, const PublicBasis* basis,
            int threads)
      : SourceView(std::move(source), std::move(path)), encoder_(encoder), basis_(basis), threads_(threads) {}
  std::size_t features() const override {
    return basis_ != nullptr ? static_cast<std::size_t>(basis_->basis.cols()) : encoder_.features();
  }
  Result<RowMajorMatrix> next(std::size_t most) override {
    constexpr std::size_t kBlockBytes = std::size_t{64} << 20;
    const std::size_t row = sizeof(double) * std::max(encoder_.pixels(), encoder_.features());
    most = std::min(most, std::clamp<std::size_t>(kBlockBytes / row, 1, 1000));
    const auto images = read_piece(*source_, most, path_, "image");
    if (!images || images->rows() == 0) return images;
    auto encoded = encoder_.encode(images->data(), static_cast<std::size_t>(images->rows()), threads_);
    if (!encoded || basis_ == nullptr) return encoded;
    encoded->rowwise() -= basis_->mean.transpose();
    return seen_through(basis_->basis, *encoded, threads_);
  }

 private:
  const ImageEncoder& encoder_;
  const PublicBasis* basis_;
  int threads_;
};

class VectorView final : public SourceView {
 public:
  using SourceView::SourceView;
  Result<RowMajorMatrix> next(std::size_t most) override {
    auto rows = read_piece(*source_, most, path_, "row");
    if (rows)
      for (Eigen::Index i = 0; i < rows->rows(); ++i)
        make_unit({rows->row(i).data(), static_cast<std::size_t>(rows->cols())});
    return rows;
  }
};

class LabelView final : public SourceView {
 public:
  LabelView(std::unique_ptr<RowSource> source, std::string path, std::size_t classes, std::string names)
      : SourceView(std::move(source), std::move(path)), classes_(classes), names_(std::move(names)) {}
  Result<RowMajorMatrix> next(std::size_t most) override {
    auto rows = read_piece(*source_, most, path_, "label");
    if (!rows) return rows;
    for (Eigen::Index i = 0; i < rows->rows(); ++i) {
      const double label = (*rows)(i, 0);
      if (label != std::floor(label) || label < 0 || label >= static_cast<double>(classes_))
        return bad_input(fmt::format("{}: label {} is {}, but {} names the classes 0 to {}", path_,
                                     done_ + static_cast<std::size_t>(i) + 1, label, names_, classes_ - 1));
    }
    done_ += static_cast<std::size_t>(rows->rows());
    return rows;
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
  CaptionView(std::vector<std::string> lines, const TextEncoder& encoder, std::string path)
      : lines_(std::move(lines)), encoder_(encoder), path_(std::move(path)) {}
  std::size_t features() const override { return encoder_.dimensions(); }
  std::optional<std::size_t> rows_announced() const override { return lines_.size(); }
  double progress() const override { return static_cast<double>(done_) / static_cast<double>(lines_.size()); }
  Result<RowMajorMatrix> next(std::size_t most) override {
    const std::size_t count = std::min(most, lines_.size() - done_);
    auto rows = encoder_.encode({lines_.data() + done_, count},
                                [&](std::size_t i) { return fmt::format("{}, line {}", path_, done_ + i + 1); });
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
  std::size_t done_ = 0;
};

// The files know their shape. A module gets three channels, or one if it refuses them. Which of them must not depend on
// the images: one in colour among many would then change how all others are encoded.
Result<ImageEncoder> encoder_for_folder(const std::string& path, const ImageFolder& folder,
                                        const EncoderChoices& choices, int threads) {
  if (choices.image_shape && *choices.image_shape != std::pair{folder.height, folder.width})
    return usage_error(
        fmt::format("the images of {} are {}x{} (height x width), but --image-shape or the model says "
                    "{}x{}",
                    path, folder.height, folder.width, choices.image_shape->first, choices.image_shape->second));
  if (folder.images == 1 && !choices.image_shape)
    return usage_error(
        fmt::format("{}: one image alone does not say how large images are: state it with --image-shape HxW", path));
  const auto make = [&](std::size_t channels) {
    return ImageEncoder::make({choices.image_encoder, folder.height, folder.width, channels, choices.lower,
                               choices.upper, choices.image_sha256, threads});
  };
  if (!choices.image_encoder.starts_with("torchscript:")) return make(1);
  if (choices.channels) return make(*choices.channels);
  auto coloured = make(3);
  if (coloured) return coloured;
  auto grey = make(1);
  return grey ? grey : coloured;
}

}  // namespace

Result<ImageEncoder> encoder_for(const std::string& path, const EncoderChoices& choices, int threads) {
  const auto folder = EIGENVEIL_TRY(image_folder(path));
  if (folder) return encoder_for_folder(path, *folder, choices, threads);
  const auto source = EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo}));
  const std::size_t pixels = source->columns().size();
  const auto root = [](std::size_t n) {
    return static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(n))));
  };
  const bool colours = choices.image_encoder.starts_with("torchscript:") && pixels % 3 == 0 &&
                       (choices.image_shape ? choices.image_shape->first * choices.image_shape->second * 3 == pixels
                                            : root(pixels) * root(pixels) != pixels);
  const std::size_t channels = colours ? 3 : 1;
  const std::size_t side = root(pixels / channels);
  const auto [height, width] = choices.image_shape.value_or(std::pair{side, side});
  if (height * width * channels != pixels)
    return usage_error(
        choices.image_shape
            ? fmt::format("--image-shape {}x{} has {} pixels, but the images of {} have {}", height, width,
                          height * width, path, pixels)
            : fmt::format("{}: {} pixels are no square; say which shape they have with --image-shape HxW", path,
                          pixels));
  return ImageEncoder::make(
      {choices.image_encoder, height, width, channels, choices.lower, choices.upper, choices.image_sha256, threads});
}

Result<std::unique_ptr<View>> image_view(const std::string& path, const ImageEncoder& encoder, const PublicBasis* basis,
                                         int threads) {
  SourceOptions options{.header = HeaderRule::kNo};
  options.colour = encoder.options().channels == 3;
  options.threads = threads;
  auto source = EIGENVEIL_TRY(open_source(path, options));
  if (source->columns().size() != encoder.pixels())
    return bad_input(fmt::format("{}: images have {} pixels, expected {}{}x{}", path, source->columns().size(),
                                 encoder.options().channels == 3 ? "3x" : "", encoder.options().height,
                                 encoder.options().width));
  return std::unique_ptr<View>(std::make_unique<ImageView>(std::move(source), path, encoder, basis, threads));
}

Result<std::unique_ptr<View>> vector_view(const std::string& path) {
  return vector_view(EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo})), path);
}

Result<std::unique_ptr<View>> vector_view(std::unique_ptr<RowSource> source, const std::string& name) {
  return std::unique_ptr<View>(std::make_unique<VectorView>(std::move(source), name));
}

Result<std::unique_ptr<View>> label_view(const std::string& path, std::size_t classes, const std::string& names) {
  auto source = EIGENVEIL_TRY(open_source(path, {.header = HeaderRule::kNo, .fields = 1}));
  if (source->columns().size() != 1)
    return bad_input(
        fmt::format("{}: labels are one number per row, but there are {}", path, source->columns().size()));
  return std::unique_ptr<View>(std::make_unique<LabelView>(std::move(source), path, classes, names));
}

Result<std::unique_ptr<View>> caption_view(const std::string& path, const TextEncoder& encoder) {
  auto lines = EIGENVEIL_TRY(read_lines(path, "caption"));
  return std::unique_ptr<View>(std::make_unique<CaptionView>(std::move(lines), encoder, path));
}

PairSource::PairSource(std::unique_ptr<View> first, std::unique_ptr<View> second, std::string first_name,
                       std::string second_name)
    : first_(std::move(first)),
      second_(std::move(second)),
      first_name_(std::move(first_name)),
      second_name_(std::move(second_name)) {
  for (std::size_t i = 1; i <= first_->features() + second_->features(); ++i) names_.push_back(std::to_string(i));
}

Status PairSource::check() const {
  const auto one = first_->rows_announced(), two = second_->rows_announced();
  if (!one || !two || *one == *two) return {};
  return bad_input(
      fmt::format("{} has {} rows but {} has {}: every pair needs both", first_name_, *one, second_name_, *two));
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
  const auto wanted = static_cast<std::size_t>(std::max<Eigen::Index>(1, left.rows()));
  RowMajorMatrix right(static_cast<Eigen::Index>(wanted), static_cast<Eigen::Index>(second_->features()));
  Eigen::Index got = 0;
  while (got < right.rows()) {
    const auto piece = EIGENVEIL_TRY(second_->next(static_cast<std::size_t>(right.rows() - got)));
    if (piece.rows() == 0) break;
    right.middleRows(got, piece.rows()) = piece;
    got += piece.rows();
  }
  if (got != left.rows())
    return bad_input(fmt::format("{} has {} than {}: every pair needs both", second_name_,
                                 got > left.rows() ? "more rows" : "fewer rows", first_name_));
  const Eigen::Index d1 = left.cols(), d2 = right.cols();
  batch.rows = static_cast<std::size_t>(got);
  batch.values.resize(batch.rows * static_cast<std::size_t>(d1 + d2));
  Eigen::Map<RowMajorMatrix> rows(batch.values.data(), got, d1 + d2);
  rows.leftCols(d1) = left;
  rows.rightCols(d2) = right.topRows(got);
  done_ += batch.rows;
  return {};
}

}  // namespace eigenveil
