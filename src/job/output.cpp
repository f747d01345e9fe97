#include "output.hpp"

#include <fmt/format.h>

namespace eigenveil {

Status check_outputs(const Outputs& outputs, std::size_t columns) {
  const auto shape = outputs.report_options.image_shape;
  if (shape && shape->height * shape->width != columns)
    return usage_error(fmt::format("--image-shape {}x{} has {} pixels, but the data has {} columns", shape->height,
                                   shape->width, shape->height * shape->width, columns));
  EIGENVEIL_TRY(check_writable(outputs.model));
  if (!outputs.report.empty()) EIGENVEIL_TRY(check_writable(outputs.report));
  return {};
}

Status write_outputs(const Model& model, const Outputs& outputs, Observer& observer) {
  observer.step("writing model");
  EIGENVEIL_TRY(write_model(model, outputs.model));
  if (!outputs.report.empty()) {
    observer.step("writing report");
    EIGENVEIL_TRY(write_text_file(outputs.report, html_report(model, outputs.report_options)));
  }
  observer.step("done");
  return {};
}

}  // namespace eigenveil
