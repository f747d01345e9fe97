// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

namespace eigenveil::python {
namespace {

using Numbers = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::dict arrays_of(const AnyModel& model) {
  nb::dict arrays;
  for (const NamedArray& array : model.arrays()) arrays[array.name.c_str()] = to_numpy(array.values, array.is_vector);
  return arrays;
}

AnyModel from_parts(const std::vector<std::tuple<std::string, Numbers, bool>>& parts, const std::string& manifest) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, values, is_vector] : parts) arrays.push_back({name, to_matrix(values), is_vector});
  return checked(AnyModel::from_parts(std::move(arrays), manifest));
}

nb::object embed(const AnyModel& model, Source& rows, bool second) {
  const Rows taken = rows.take();
  return to_numpy(checked(without_lock([&] { return model.embed(taken, second); })), false);
}

}  // namespace

nb::object to_numpy(const Matrix& values, bool is_vector) {
  const auto rows = static_cast<std::size_t>(values.rows()), columns = static_cast<std::size_t>(values.cols());
  auto* copy = new RowMajorMatrix(values);
  const nb::capsule owner(copy, [](void* kept) noexcept { delete static_cast<RowMajorMatrix*>(kept); });
  const std::size_t shape[2] = {rows, columns};
  if (is_vector) return nb::cast(nb::ndarray<nb::numpy, double>(copy->data(), 1, shape, owner));
  return nb::cast(nb::ndarray<nb::numpy, double>(copy->data(), 2, shape, owner));
}

Matrix to_matrix(const Numbers& values) {
  return Eigen::Map<const RowMajorMatrix>(values.data(), static_cast<Eigen::Index>(values.shape(0)),
                                          static_cast<Eigen::Index>(values.shape(1)));
}

void bind_models(nb::module_& m) {
  nb::class_<AnyModel>(m, "Model")
      .def_static("load", [](const std::string& path) { return checked(AnyModel::load(path)); })
      .def_static("from_parts", &from_parts)
      .def_prop_ro("kind", &AnyModel::kind)
      .def_prop_ro("arrays", &arrays_of)
      .def_prop_ro("manifest", [](const AnyModel& model) { return model.manifest; })
      .def_prop_ro("warnings", [](const AnyModel& model) { return model.warnings; })
      .def_prop_ro("is_private", [](const AnyModel& model) { return model.is_private; })
      .def_prop_ro("rows", [](const AnyModel& model) { return model.rows; })
      .def_prop_ro("deviation", [](const AnyModel& model) { return model.deviation; })
      .def_prop_ro("features", &AnyModel::features)
      .def_prop_ro("columns", &AnyModel::columns)
      .def_prop_ro("score_names", &AnyModel::score_names)
      .def("save", [](const AnyModel& model,
                      const std::string& path) { checked(without_lock([&] { return model.save(path); })); })
      .def("report",
           [](const AnyModel& model, const std::string& path,
              std::optional<std::pair<std::size_t, std::size_t>> image_shape) {
             std::optional<ImageShape> shape;
             if (image_shape) shape = ImageShape{image_shape->first, image_shape->second};
             checked(model.report(path, shape));
           })
      .def("report_html", &AnyModel::report_html)
      .def("transform",
           [](const AnyModel& model, Source& rows) {
             const Rows taken = rows.take();
             return to_numpy(checked(without_lock([&] { return model.transform(taken); })), false);
           })
      .def("inverse_transform",
           [](const AnyModel& model, const Numbers& scores) {
             return to_numpy(checked(model.inverse_transform(to_matrix(scores))), false);
           })
      .def("predict_classes",
           [](const AnyModel& model, Source& rows) {
             const Rows taken = rows.take();
             return checked(without_lock([&] { return model.predict_classes(taken); }));
           })
      .def("embed", &embed)
      .def("retrieve",
           [](const AnyModel& model, Source& x, Source& y, Eigen::Index k) {
             const Rows first = x.take(), second = y.take();
             return to_numpy(checked(without_lock([&] { return model.retrieve(first, second, k); })), false);
           })
      .def("regress", [](const AnyModel& model, const std::string& target, std::optional<double> ridge) {
        return checked(model.regress(target, ridge));
      });
}

}  // namespace eigenveil::python
