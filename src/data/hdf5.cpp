// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "array.hpp"
#include "format.hpp"
#include "text.hpp"

namespace eigenveil::data {
namespace {

/// HDF5 unpacks whole chunks, and keeps the chunks that the rows at hand cross so as not to unpack them again: what
/// these may take.
constexpr std::uint64_t kLargestChunk = std::uint64_t{64} << 20;
constexpr std::size_t kMostListed = 1000;

/// HDF5 prints its errors unless told otherwise; the setting is the process's, so it is put back.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// Owns an HDF5 identifier.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ < 0) return;
    const Quiet quiet;
    H5Idec_ref(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
};

/// The innermost reason on HDF5's error stack.
std::string reason() {
  std::string text = "no further reason given";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned level, const H5E_error2_t* error, void* out) -> herr_t {
        if (level == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &text);
  return text;
}

Error damaged(const std::string& name) {
  return bad_input(fmt::format("{}: HDF5 cannot read it ({}); is it truncated or damaged?", name, reason()));
}

herr_t collect(hid_t, const char* name, const H5O_info_t* info, void* out) {
  auto& names = *static_cast<std::vector<std::string>*>(out);
  if (info->type == H5O_TYPE_DATASET) names.emplace_back(name);
  return names.size() >= kMostListed ? 1 : 0;
}

Result<std::string> choose(const std::string& path, hid_t file, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  std::vector<std::string> names;
  if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect, &names, H5O_INFO_BASIC) < 0) return damaged(path);
  if (names.empty()) return bad_input(fmt::format("{}: this HDF5 file holds no data set", path));
  if (names.size() > 1)
    return bad_input(
        fmt::format("{}: holds {} data sets; choose one of them as member: {}", path, names.size(), some_of(names)));
  return names.front();
}

/// A link may lead out of the file, to rows that nobody named.
bool lies_elsewhere(hid_t file, hid_t set) {
  H5O_info_t own{};
  H5O_info_t other{};
  return H5Oget_info2(file, &own, H5O_INFO_BASIC) < 0 || H5Oget_info2(set, &other, H5O_INFO_BASIC) < 0 ||
         own.fileno != other.fileno;
}

struct Opened {
  Handle file;
  Handle set;
  ArrayShape shape;
  std::size_t dimensions = 0;
  double exact_below = 0x1p53;
};

class Hdf5Reader final : public ArrayReader {
 public:
  Hdf5Reader(Opened opened, std::string name) : opened_(std::move(opened)), name_(std::move(name)) {}

  Status read(std::size_t rows, const std::vector<std::size_t>& columns, double* out) override {
    const std::size_t width = opened_.shape.columns;
    const std::size_t most = std::max<std::size_t>(1, kPieceBytes / (width * sizeof(double)));
    while (rows > 0) {
      const std::size_t piece = std::min(rows, most);
      values_.resize(piece * width);
      EIGENVEIL_TRY(read_piece(piece));
      for (std::size_t r = 0; r < piece; ++r)
        for (std::size_t column : columns) *out++ = values_[r * width + column];
      done_ += piece;
      rows -= piece;
    }
    return {};
  }
  Status skip(std::size_t rows) override {
    done_ += rows;
    return {};
  }
  double progress() const override {
    return opened_.shape.rows == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(opened_.shape.rows);
  }
  double exact_below() const override { return opened_.exact_below; }

 private:
  Status read_piece(std::size_t rows) {
    const Quiet quiet;
    const hsize_t start[2] = {done_, 0};
    const hsize_t count[2] = {rows, opened_.shape.columns};
    const Handle memory(H5Screate_simple(static_cast<int>(opened_.dimensions), count, nullptr));
    const Handle space(H5Dget_space(opened_.set.get()));
    if (!memory.valid() || !space.valid() ||
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr) < 0 ||
        H5Dread(opened_.set.get(), H5T_NATIVE_DOUBLE, memory.get(), space.get(), H5P_DEFAULT, values_.data()) < 0)
      return bad_input(fmt::format("{}: rows {} to {} cannot be read ({}); the file is truncated or damaged", name_,
                                   done_ + 1, done_ + rows, reason()));
    return {};
  }

  Opened opened_;
  std::string name_;
  std::size_t done_ = 0;
  std::vector<double> values_;
};

Result<std::size_t> element_size(const std::string& name, hid_t set) {
  const Handle type(H5Dget_type(set));
  if (!type.valid()) return damaged(name);
  const H5T_class_t kind = H5Tget_class(type.get());
  const std::size_t size = H5Tget_size(type.get());
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || size == 0 || size > 16)
    return bad_input(fmt::format("{}: does not hold plain numbers; integers or floats are expected", name));
  return size;
}

/// Integers below 2^(bits of the mantissa + 1) are exact in a float.
double exact_integers(hid_t set) {
  const Handle type(H5Dget_type(set));
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, bits = 0;
  if (!type.valid() || H5Tget_class(type.get()) != H5T_FLOAT) return 0x1p53;
  if (H5Tget_fields(type.get(), &sign, &exponent, &exponent_bits, &mantissa, &bits) < 0 || bits >= 52) return 0x1p53;
  return std::ldexp(1.0, static_cast<int>(bits) + 1);
}

/// Opens the data set again with a cache that holds all chunks of a row, up to the limit.
Status widen_cache(const std::string& name, Opened& opened, std::uint64_t chunk_bytes, std::uint64_t chunk_columns) {
  const std::uint64_t across = (opened.shape.columns + chunk_columns - 1) / chunk_columns;
  const std::uint64_t bytes = chunk_bytes > kLargestChunk / across ? kLargestChunk : chunk_bytes * across;
  if (bytes <= kPieceBytes) return {};
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS));
  constexpr std::size_t kSlots = 12421;  // a prime, some hundred times the number of chunks, as HDF5's manual advises
  if (!access.valid() || H5Pset_chunk_cache(access.get(), kSlots, bytes, 1.0) < 0) return damaged(name);
  const ssize_t length = H5Iget_name(opened.set.get(), nullptr, 0);
  if (length <= 0) return damaged(name);
  std::string path(length, '\0');
  H5Iget_name(opened.set.get(), path.data(), path.size() + 1);
  opened.set = Handle(H5Dopen2(opened.file.get(), path.c_str(), access.get()));
  return opened.set.valid() ? Status() : damaged(name);
}

Status prepare_chunks(const std::string& name, hid_t creation, Opened& opened, std::size_t element) {
  hsize_t chunk[2] = {1, 1};
  if (H5Pget_chunk(creation, static_cast<int>(opened.dimensions), chunk) < 0) return damaged(name);
  // each side of a chunk is below 2^32, so that this product cannot overflow
  if (chunk[0] > UINT32_MAX || chunk[1] > UINT32_MAX || chunk[0] * chunk[1] > kLargestChunk / element)
    return bad_input(
        fmt::format("{}: its chunks are larger than {} MiB, which must be unpacked at once; rewrite it with "
                    "smaller chunks (h5repack)",
                    name, kLargestChunk >> 20));
  return widen_cache(name, opened, chunk[0] * chunk[1] * element, chunk[1]);
}

/// Sizes that the header announces against what the file has.
Status check_storage(const std::string& name, const File& file, Opened& opened, std::size_t element) {
  const Handle creation(H5Dget_create_plist(opened.set.get()));
  if (!creation.valid()) return damaged(name);
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0)
    return bad_input(fmt::format("{}: keeps its values in other files; copy it into one file (h5repack) first", name));
  if (layout == H5D_CHUNKED) EIGENVEIL_TRY(prepare_chunks(name, creation.get(), opened, element));
  const std::uint64_t stored = H5Dget_storage_size(opened.set.get());
  const std::uint64_t needed = std::uint64_t{opened.shape.rows} * opened.shape.columns * element;
  if (stored == 0 && needed > 0)
    return bad_input(fmt::format("{}: announces {} rows but holds no values", name, opened.shape.rows));
  const bool cut_off = layout == H5D_CHUNKED ? stored > file.size() : stored != needed || needed > file.size();
  if (layout != H5D_COMPACT && cut_off)
    return bad_input(fmt::format("{}: is truncated: it announces {} rows of {} columns, {} bytes, but the file has {}",
                                 name, opened.shape.rows, opened.shape.columns, needed, file.size()));
  return {};
}

Status open_set(const Recognised& from, const std::string& member, Opened& opened, std::string& name) {
  const std::string& path = from.file->path();
  opened.file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!opened.file.valid()) return damaged(path);
  const Result<std::string> chosen = choose(path, opened.file.get(), member);
  if (!chosen.ok()) return chosen.error();
  name = fmt::format("{} (data set {})", path, in_quotes(*chosen));
  opened.set = Handle(H5Dopen2(opened.file.get(), chosen->c_str(), H5P_DEFAULT));
  if (!opened.set.valid())
    return bad_input(fmt::format("{}: there is no data set {} ({})", path, in_quotes(*chosen), reason()));
  if (lies_elsewhere(opened.file.get(), opened.set.get()))
    return bad_input(fmt::format("{}: is a link to another file; name that file itself", name));

  const Result<std::size_t> element = element_size(name, opened.set.get());
  if (!element.ok()) return element.error();
  const Handle space(H5Dget_space(opened.set.get()));
  const int dimensions = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (dimensions != 1 && dimensions != 2)
    return bad_input(fmt::format("{}: has {} dimensions; expected 2 (rows x columns) or 1 (one column)", name,
                                 std::max(dimensions, 0)));
  hsize_t extent[2] = {0, 1};
  if (H5Sget_simple_extent_dims(space.get(), extent, nullptr) < 0) return damaged(name);
  opened.dimensions = dimensions;
  opened.exact_below = exact_integers(opened.set.get());
  const Result<ArrayShape> shape = array_shape(name, {extent, extent + dimensions}, *element);
  if (!shape.ok()) return shape.error();
  opened.shape = *shape;
  return check_storage(name, *from.file, opened, *element);
}

}  // namespace

Result<Table> open_hdf5(const Recognised& from, const SourceOptions& options) {
  Opened opened;
  std::string name;
  {
    const Quiet quiet;
    EIGENVEIL_TRY(open_set(from, options.member, opened, name));
  }
  const ArrayShape shape = opened.shape;
  return array_table(name, shape, std::make_unique<Hdf5Reader>(std::move(opened), name));
}

}  // namespace eigenveil::data
