#include "eigenveil/data/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "npy.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kMostDimensions = 8;

template <class T>
std::vector<T> gathered(const std::vector<T>& from, const std::vector<std::size_t>& rows, std::size_t size) {
  std::vector<T> to;
  to.reserve(rows.size() * size);
  for (const std::size_t row : rows) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(row * size);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return to;
}

Result<Tensor> read_tensor(const std::string& path, const std::string& name) {
  auto array = EIGENVEIL_TRY(data::open_npz_array(path, name, kMostDimensions));
  const data::NpyHeader& header = array.header;
  const std::string& where = array.stream->name();
  if (header.fortran_order)
    return bad_input(fmt::format("{}: is stored column by column; save numpy.ascontiguousarray of it", where));
  Tensor tensor{name, {header.dimensions.begin(), header.dimensions.end()}, {}, {}, false};
  tensor.whole = header.type.kind != data::ElementKind::kFloat;

  // Grows with what arrives, so that a false size costs nothing.
  std::vector<char> bytes;
  for (std::uint64_t left = header.array_bytes(); left > 0;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, data::kPieceBytes));
    bytes.resize(piece);
    EIGENVEIL_TRY(data::read_exactly(*array.stream, bytes.data(), piece, "array"));
    data::with_loader(header.type, [&](const auto& load) {
      for (std::size_t at = 0; at < piece; at += header.type.size) {
        const double value = load(bytes.data() + at);
        if (tensor.whole)
          tensor.integers.push_back(static_cast<std::int64_t>(std::min(value, 0x1p62)));
        else
          tensor.floats.push_back(static_cast<float>(value));
      }
    });
    left -= piece;
  }
  EIGENVEIL_TRY(data::expect_end(*array.stream));
  for (std::size_t i = 0; i < tensor.floats.size(); ++i)
    if (!std::isfinite(tensor.floats[i]))
      return bad_input(fmt::format("{}: row {} has a value that is missing, not finite, or too large for a float",
                                   where, i / tensor.row_size() + 1));
  return tensor;
}

}  // namespace

std::size_t Tensor::row_size() const {
  std::size_t size = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= static_cast<std::size_t>(shape[i]);
  return size;
}

Tensor Tensor::take(const std::vector<std::size_t>& rows) const {
  Tensor taken{name, shape, {}, {}, whole};
  taken.shape.front() = static_cast<std::int64_t>(rows.size());
  if (whole)
    taken.integers = gathered(integers, rows, row_size());
  else
    taken.floats = gathered(floats, rows, row_size());
  return taken;
}

Result<std::vector<Tensor>> read_tensors(const std::string& path) {
  const auto names = EIGENVEIL_TRY(data::npz_arrays(path));
  if (names.empty()) return bad_input(fmt::format("{}: holds no arrays; expected an NPZ file of numpy.savez", path));
  std::vector<Tensor> tensors;
  for (const std::string& name : names) {
    auto tensor = EIGENVEIL_TRY(read_tensor(path, name));
    tensors.push_back(std::move(tensor));
    if (tensors.back().rows() != tensors.front().rows())
      return bad_input(fmt::format("{}: '{}' has {} rows but '{}' has {}: every pair needs both", path,
                                   tensors.front().name, tensors.front().rows(), name, tensors.back().rows()));
  }
  return tensors;
}

}  // namespace eigenveil
