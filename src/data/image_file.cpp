// SPDX-License-Identifier: Apache-2.0
#include "image_file.hpp"

#include <fmt/format.h>
#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs it
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <jpeglib.h>

#include "file.hpp"
#include "selection.hpp"

// libpng and libjpeg leave by longjmp. A function that calls setjmp here owns nothing that has a destructor: what must
// be freed is a member of the reader, which its caller owns.
// NOLINTBEGIN(cert-err52-cpp,modernize-avoid-setjmp-longjmp)

namespace eigenveil::data {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kMostImageBytes = std::uint64_t{64} << 20;
constexpr std::size_t kHeaderBytes = std::size_t{64} << 10;  // where the size of an image nearly always stands
constexpr int kMostScans = 200;                              // of a progressive JPEG: each costs time and few bytes
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n"sv;
constexpr std::string_view kJpegMagic = "\xff\xd8\xff"sv;

/// Pixels as the libraries give them: channels of a pixel side by side, rows without gaps.
struct RawImage {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;  // 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha
  bool wide = false;         // 16 bits per value, in the machine's order
  std::vector<unsigned char> bytes;
};

class ImageReader {
 public:
  virtual ~ImageReader() = default;
  /// False: `message` says why.
  virtual bool read_header() = 0;
  virtual bool read_pixels(RawImage& image) = 0;
  virtual ImageHeader header() const = 0;
  virtual const char* refusal() const { return nullptr; }  ///< of what the header announces
  const char* message() const { return message_; }

 protected:
  void say(const char* message) { std::snprintf(message_, sizeof message_, "%s", message); }
  char message_[JMSG_LENGTH_MAX] = "not enough memory";
};

class PngReader final : public ImageReader {
 public:
  explicit PngReader(std::string_view bytes) : bytes_(bytes) {}
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  bool read_header() override {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &fail, [](png_structp, png_const_charp) {});
    if (png_ == nullptr) return false;
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, &feed);
    // Texts, profiles and the like are skipped; damage to the rest is no warning but an error.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_benign_errors(png_, 0);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours are checked by the caller
    png_read_info(png_, info_);
    return true;
  }

  ImageHeader header() const override {
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_),
            (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0};
  }

  bool read_pixels(RawImage& image) override {
    if (!prepare()) return false;
    image.height = png_get_image_height(png_, info_);
    image.width = png_get_image_width(png_, info_);
    image.channels = png_get_channels(png_, info_);
    image.wide = png_get_bit_depth(png_, info_) == 16;
    const std::size_t stride = png_get_rowbytes(png_, info_);
    image.bytes.resize(image.height * stride);
    rows_.resize(image.height);
    for (std::size_t y = 0; y < image.height; ++y) rows_[y] = image.bytes.data() + y * stride;
    return read_rows();
  }

 private:
  bool prepare() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);  // palettes to colours, grey to 8 bits at least, transparent colours to alpha
    if constexpr (std::endian::native == std::endian::little) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  bool read_rows() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }
  static void fail(png_structp png, png_const_charp message) {
    static_cast<PngReader*>(png_get_error_ptr(png))->say(message);
    png_longjmp(png, 1);
  }
  static void feed(png_structp png, png_bytep to, std::size_t size) {
    auto& bytes = static_cast<PngReader*>(png_get_io_ptr(png))->bytes_;
    if (size > bytes.size()) png_error(png, "the file ends early");
    std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  }

  std::string_view bytes_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
};

class JpegReader final : public ImageReader {
 public:
  explicit JpegReader(std::string_view bytes) : bytes_(bytes) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = [](j_common_ptr jpeg) { leave(jpeg); };
    // A warning (below 0) means that pixels were made up.
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0) leave(jpeg);
    };
    progress_.progress_monitor = [](j_common_ptr jpeg) {
      if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMostScans) {
        self(jpeg).say("it has too many scans");
        std::longjmp(self(jpeg).jump_, 1);
      }
    };
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() override { jpeg_destroy_decompress(&jpeg_); }

  bool read_header() override {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  ImageHeader header() const override {
    return {jpeg_.image_height, jpeg_.image_width, jpeg_.jpeg_color_space != JCS_GRAYSCALE};
  }

  const char* refusal() const override {
    const J_COLOR_SPACE space = jpeg_.jpeg_color_space;
    if (space == JCS_GRAYSCALE || space == JCS_YCbCr || space == JCS_RGB) return nullptr;
    return space == JCS_CMYK || space == JCS_YCCK ? "is in CMYK" : "is in an unknown colour space";
  }

  bool read_pixels(RawImage& image) override {
    const bool colour = header().colour;
    jpeg_.out_color_space = colour ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_.dct_method = JDCT_ISLOW;  // the same on every machine
    image.height = jpeg_.image_height;
    image.width = jpeg_.image_width;
    image.channels = colour ? 3 : 1;
    image.bytes.resize(image.height * image.width * image.channels);
    return read_rows(image.bytes.data(), image.width * image.channels);
  }

 private:
  bool read_rows(unsigned char* to, std::size_t stride) {
    if (setjmp(jump_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = to + jpeg_.output_scanline * stride;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }
  static JpegReader& self(j_common_ptr jpeg) { return *static_cast<JpegReader*>(jpeg->client_data); }
  [[noreturn]] static void leave(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, self(jpeg).message_);
    std::longjmp(self(jpeg).jump_, 1);
  }

  std::string_view bytes_;
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  std::jmp_buf jump_{};
};

// NOLINTEND(cert-err52-cpp,modernize-avoid-setjmp-longjmp)

std::string ending_of(const std::string& name) {
  std::string ending = std::filesystem::path(name).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

Status check_ending(const std::string& path, std::string_view bytes) {
  const bool png = ending_of(path) == ".png";
  if (bytes.starts_with(png ? kPngMagic : kJpegMagic)) return {};
  const char* promised = png ? "PNG" : "JPEG";
  if (bytes.starts_with(png ? kJpegMagic : kPngMagic))
    return bad_input(fmt::format("{}: is named like {} but is a {} file; give it the right ending", path, promised,
                                 png ? "JPEG" : "PNG"));
  return bad_input(fmt::format(
      "{}: is named like {} but does not begin like it; the file is damaged, or something else", path, promised));
}

Result<std::string> bytes_of_image(const std::string& path, std::size_t most) {
  const Result<FilePtr> file = File::open(path);
  if (!file.ok()) return file.error();
  if ((*file)->size() == 0) return bad_input(fmt::format("{}: is empty", path));
  if ((*file)->size() > kMostImageBytes)
    return bad_input(
        fmt::format("{}: has {} bytes; images of more than {} are not read", path, (*file)->size(), kMostImageBytes));
  std::string bytes(std::min<std::size_t>(most, (*file)->size()), '\0');
  EIGENVEIL_TRY((*file)->read_all(0, bytes.data(), bytes.size()));
  EIGENVEIL_TRY(check_ending(path, bytes));
  return bytes;
}

std::unique_ptr<ImageReader> reader_of(std::string_view bytes) {
  if (bytes.starts_with(kPngMagic)) return std::make_unique<PngReader>(bytes);
  return std::make_unique<JpegReader>(bytes);
}

Result<ImageHeader> checked_header(const std::string& path, ImageReader& reader) {
  if (!reader.read_header())
    return bad_input(fmt::format("{}: is no image that can be read: {}", path, reader.message()));
  if (const char* refusal = reader.refusal())
    return bad_input(fmt::format("{}: {}; save it in RGB or grey", path, refusal));
  const ImageHeader header = reader.header();
  if (header.width == 0 || header.height == 0 || header.height > kMostColumns / header.width)
    return bad_input(
        fmt::format("{}: is {}x{} (height x width); images have from 1 to {} pixels here: scale it down, or is its "
                    "header damaged?",
                    path, header.height, header.width, kMostColumns));
  return header;
}

// Over black, which is 0: v alpha / largest, rounded.
std::uint32_t over_black(std::uint32_t v, std::uint32_t alpha, std::uint32_t largest) {
  return static_cast<std::uint32_t>((std::uint64_t{v} * alpha + largest / 2) / largest);
}

void put_pixels(const RawImage& image, bool colour, double* out) {
  const std::uint32_t largest = image.wide ? 65535 : 255;
  const auto value = [&](std::size_t at) -> std::uint32_t {
    if (!image.wide) return image.bytes[at];
    std::uint16_t wide = 0;
    std::memcpy(&wide, image.bytes.data() + 2 * at, 2);
    return wide;
  };
  const std::size_t pixels = image.height * image.width, channels = image.channels;
  const double scale = image.wide ? 257.0 : 1.0;
  for (std::size_t i = 0; i < pixels; ++i) {
    std::uint32_t rgb[3];
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[c] = value(i * channels + (channels >= 3 ? c : 0));
      if (channels % 2 == 0) rgb[c] = over_black(rgb[c], value(i * channels + channels - 1), largest);
    }
    if (colour) {
      for (std::size_t c = 0; c < 3; ++c) out[c * pixels + i] = rgb[c] / scale;
      continue;
    }
    // The weights add up to 2^16: grey stays what it was.
    const std::uint64_t grey =
        (std::uint64_t{19595} * rgb[0] + std::uint64_t{38470} * rgb[1] + std::uint64_t{7471} * rgb[2] + 32768) >> 16;
    out[i] = static_cast<double>(grey) / scale;
  }
}

}  // namespace

bool is_image_name(const std::string& name) {
  const std::string ending = ending_of(name);
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Result<ImageHeader> image_header(const std::string& path) {
  for (const std::size_t most : {kHeaderBytes, std::size_t{kMostImageBytes}}) {
    const auto bytes = EIGENVEIL_TRY(bytes_of_image(path, most));
    auto header = checked_header(path, *reader_of(bytes));
    if (header || bytes.size() < most) return header;
  }
  return internal_error("an image's header was not read");
}

Status read_image(const std::string& path, const std::optional<std::pair<std::size_t, std::size_t>>& shape,
                  std::size_t pixels, bool colour, double* out) {
  const auto bytes = EIGENVEIL_TRY(bytes_of_image(path, kMostImageBytes));
  const auto reader = reader_of(bytes);
  const auto header = EIGENVEIL_TRY(checked_header(path, *reader));
  if (header.height * header.width != pixels || (shape && shape != std::pair{header.height, header.width}))
    return bad_input(
        fmt::format("{}: is {}x{} (height x width), but {} is expected: all images of a folder must have the same "
                    "size; scale them first",
                    path, header.height, header.width,
                    shape ? fmt::format("{}x{}", shape->first, shape->second) : fmt::format("{} pixels", pixels)));
  RawImage image;
  if (!reader->read_pixels(image))
    return bad_input(fmt::format("{}: is damaged or truncated: {}", path, reader->message()));
  put_pixels(image, colour, out);
  return {};
}

}  // namespace eigenveil::data
