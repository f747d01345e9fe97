// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "npy.hpp"
#include "zip_archive.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kMostDimensions = 8;

template <class T>
std::vector<T> gathered(const std::vector<T>& from, const std::vector<std::size_t>& rows, std::size_t size) {
  std::vector<T> to;
  to.reserve(rows.size() * size);
  for (const std::size_t row : rows) {
    const auto first = from.begin() + row * size;
    to.insert(to.end(), first, first + size);
  }
  return to;
}

Result<Tensor> read_tensor(const std::string& name, const data::NpzArray& array) {
  const data::NpyHeader& header = array.header;
  const std::string& where = array.stream->name();
  if (header.fortran_order)
    return bad_input(fmt::format("{}: is stored column by column; save numpy.ascontiguousarray of it", where));
  Tensor tensor{name, {header.dimensions.begin(), header.dimensions.end()}, {}, {}, false};
  tensor.whole = header.type.kind != data::ElementKind::kFloat;

  // Grows with what arrives, so that a false size costs nothing.
  EIGENVEIL_TRY(data::for_each_number(*array.stream, header, [&](double value) {
    if (tensor.whole)
      tensor.integers.push_back(static_cast<std::int64_t>(std::min(value, 0x1p62)));
    else
      tensor.floats.push_back(static_cast<float>(value));
  }));
  for (std::size_t i = 0; i < tensor.floats.size(); ++i)
    if (!std::isfinite(tensor.floats[i]))
      return bad_input(fmt::format("{}: row {} has a value that is missing, not finite, or too large for a float",
                                   where, i / tensor.row_size() + 1));
  return tensor;
}

}  // namespace

std::size_t Tensor::row_size() const {
  std::size_t size = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
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
  const auto file = EIGENVEIL_TRY(data::File::open(path));
  const auto archive = EIGENVEIL_TRY(data::ZipArchive::open(*file));
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    const auto name = data::array_name(archive.members()[i]);
    if (!name) continue;
    const auto array = EIGENVEIL_TRY(data::open_npz_array(archive, i, path, {.most_dimensions = kMostDimensions}));
    tensors.push_back(EIGENVEIL_TRY(read_tensor(*name, array)));
    if (tensors.back().rows() != tensors.front().rows())
      return bad_input(fmt::format("{}: '{}' has {} rows but '{}' has {}: every pair needs both", path,
                                   tensors.front().name, tensors.front().rows(), *name, tensors.back().rows()));
  }
  if (tensors.empty()) return bad_input(fmt::format("{}: holds no arrays; expected an NPZ file of numpy.savez", path));
  return tensors;
}

}  // namespace eigenveil
