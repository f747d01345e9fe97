// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/npy_file.hpp"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <string_view>

#include "eigenveil/base/atomic_file.hpp"
#include "npy.hpp"
#include "npy_encode.hpp"

namespace eigenveil {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

std::string_view bytes_of(const RowMajorMatrix& values) {
  return {reinterpret_cast<const char*>(values.data()), static_cast<std::size_t>(values.size()) * sizeof(double)};
}

}  // namespace

std::string data::npy_header(std::size_t rows, std::size_t columns, bool is_vector) {
  const std::string shape = is_vector ? fmt::format("({},)", rows) : fmt::format("({}, {})", rows, columns);
  const std::string text = fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': {}, }}", shape);
  constexpr std::size_t kWhole = 128, kPrefix = 10, kText = kWhole - kPrefix - 1;
  assert(text.size() <= kText);
  std::string header(kNpyMagic);
  header += {'\x01', '\x00', static_cast<char>(kText + 1), '\x00'};
  header += text;
  header.append(kText - text.size(), ' ');
  header += '\n';
  return header;
}

std::string data::encode_npy(const NamedArray& array) {
  const RowMajorMatrix values = array.values;
  std::string bytes = npy_header(array.is_vector ? values.size() : values.rows(), values.cols(), array.is_vector);
  return bytes.append(bytes_of(values));
}

Result<NpyFile> NpyFile::create(const std::string& path, std::size_t columns) {
  auto file = EIGENVEIL_TRY(AtomicFile::create(path));
  EIGENVEIL_TRY(file.append(data::npy_header(0, columns, false)));
  return NpyFile(std::move(file), columns);
}

Status NpyFile::append(const RowMajorMatrix& rows) {
  rows_ += rows.rows();
  return file_.append(bytes_of(rows));
}

Status NpyFile::commit() {
  EIGENVEIL_TRY(file_.overwrite(0, data::npy_header(rows_, columns_, false)));
  return file_.commit();
}

}  // namespace eigenveil
