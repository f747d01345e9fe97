// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core.hpp"

namespace eigenveil::python {
namespace {

template <class T>
using Contiguous = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                              Eigen::OuterStride<Eigen::Dynamic>>;
template <class T>
using Strided = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                           Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

// The numbers of a buffer where they lie; rows are converted a batch at a time.
template <class T>
std::unique_ptr<RowSource> rows_of(const Py_buffer& view, std::vector<std::string> names) {
  const auto* data = static_cast<const T*>(view.buf);
  const auto size = static_cast<Py_ssize_t>(sizeof(T));
  const Eigen::Index rows = view.shape[0], columns = view.shape[1];
  const Eigen::Index outer = view.strides[0] / size, inner = view.strides[1] / size;
  if (view.strides[0] % size != 0 || view.strides[1] % size != 0)
    raise(bad_input("an array whose numbers do not lie on whole places: make a copy of it"));
  if (inner == 1) {
    const Contiguous<T> map(data, rows, columns, Eigen::OuterStride<Eigen::Dynamic>(outer));
    return std::make_unique<ExpressionSource<Contiguous<T>>>(map, std::move(names));
  }
  const Strided<T> map(data, rows, columns, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(outer, inner));
  return std::make_unique<ExpressionSource<Strided<T>>>(map, std::move(names));
}

std::unique_ptr<RowSource> typed_rows(const Py_buffer& view, std::vector<std::string> names) {
  const char* format = view.format == nullptr ? "B" : view.format;
  const char kind = format[0] == '@' || format[0] == '=' ? format[1] : format[0];
  switch (kind) {
    case 'd':
      return rows_of<double>(view, std::move(names));
    case 'f':
      return rows_of<float>(view, std::move(names));
    case 'e':
      return rows_of<Eigen::half>(view, std::move(names));
    case '?':
      return rows_of<bool>(view, std::move(names));
    case 'b':
      return rows_of<std::int8_t>(view, std::move(names));
    case 'B':
      return rows_of<std::uint8_t>(view, std::move(names));
    case 'h':
      return rows_of<std::int16_t>(view, std::move(names));
    case 'H':
      return rows_of<std::uint16_t>(view, std::move(names));
    case 'i':
      return rows_of<std::int32_t>(view, std::move(names));
    case 'I':
      return rows_of<std::uint32_t>(view, std::move(names));
    case 'l':
    case 'q':
      return rows_of<std::int64_t>(view, std::move(names));
    case 'L':
    case 'Q':
      return rows_of<std::uint64_t>(view, std::move(names));
    default:
      raise(bad_input(std::string("an array of the format '") + format + "' holds no numbers that rows can have"));
  }
}

Source of_array(nb::object array, std::vector<std::string> names) {
  auto buffer = std::make_shared<Buffer>(array, PyBUF_STRIDED_RO | PyBUF_FORMAT);
  const Py_buffer& view = buffer->view();
  if (view.ndim != 2)
    raise(bad_input("rows are an array of two dimensions, but this one has " + std::to_string(view.ndim)));
  return {{}, typed_rows(view, std::move(names)), {buffer}};
}

Source of_arrow(nb::handle capsule, std::optional<std::vector<std::string>> files) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  return {{},
          checked(without_lock([&] { return arrow_source(stream); })),
          {},
          files ? RowFiles(*std::move(files)) : RowFiles::unknown()};
}

Source of_parts(nb::list parts, std::vector<std::string> names) {
  Source joined;
  std::vector<std::unique_ptr<RowSource>> sources;
  for (nb::handle part : parts) {
    Source& source = nb::cast<Source&>(part);
    if (!source.rows) raise(usage_error("tables of files do not stand side by side: read them first"));
    sources.push_back(std::move(source.rows));
    joined.buffers.insert(joined.buffers.end(), source.buffers.begin(), source.buffers.end());
    joined.files.add(source.files);
  }
  joined.rows = checked(joined_source(std::move(sources), std::move(names)));
  return joined;
}

}  // namespace

Buffer::Buffer(nb::handle object, int flags) {
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
}

Buffer::~Buffer() {
  const nb::gil_scoped_acquire acquired;
  PyBuffer_Release(&view_);
}

Rows Source::take() {
  if (!path.empty()) return path;
  if (!rows) raise(usage_error("these rows were read already: give them again"));
  return {std::move(rows), std::move(files)};
}

void bind_sources(nb::module_& m) {
  nb::class_<Source>(m, "Source").def_prop_ro("columns", &Source::columns);
  m.def("path", [](std::string path) { return Source{std::move(path), nullptr, {}}; });
  m.def("array", &of_array, nb::arg("array"), nb::arg("names") = std::vector<std::string>());
  m.def("arrow", &of_arrow, nb::arg("stream"), nb::arg("files").none() = std::vector<std::string>());
  m.def("text", [](std::vector<std::string> values, std::string name) {
    return Source{{}, text_source(std::move(values), std::move(name)), {}};
  });
  m.def("join", &of_parts);
}

}  // namespace eigenveil::python
