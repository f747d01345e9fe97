#include "eigenveil/job/pca.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/pca/gram.hpp"

namespace eigenveil {
namespace {

const char* name(RowFilter filter) {
  return filter == RowFilter::kOff ? "off" : filter == RowFilter::kShrink ? "shrink" : "drop";
}

// The plain power method is the one without a filter.
PowerOptions power_options(const PcaJob& job) {
  PowerOptions power = job.power;
  if (job.method == PcaMethod::kPower) power.filter = RowFilter::kOff;
  return power;
}

PrivacyPlan plan_pca(const PcaJob& job, const PcaOptions& options) {
  return job.method == PcaMethod::kGram ? plan_gram(job.privacy.adjacency, options)
                                        : plan_power(job.privacy.adjacency, options, power_options(job));
}

Result<PcaResult> fit_pca(const PcaJob& job, const ChargedOracle& charged, const PcaOptions& options) {
  return job.method == PcaMethod::kGram ? fit_gram(*charged.oracle, charged.plan, options)
                                        : fit_power(*charged.oracle, charged.plan, options, power_options(job));
}

nlohmann::json options_json(const PcaJob& job, double row_bound) {
  nlohmann::json options = row_options_json(job.rows, row_bound);
  options["components"] = job.components;
  if (job.sparsity) options["sparsity"] = *job.sparsity;
  if (job.method != PcaMethod::kGram) {
    const PowerOptions power = power_options(job);
    options["rounds"] = power.rounds;
    options["filter"] = name(power.filter);
    if (power.filter != RowFilter::kOff) options["grid_ratio"] = power.grid_ratio;
  }
  return options;
}

nlohmann::json manifest_json(const PcaJob& job, const ChargedOracle& charged, const BoundedData& data,
                             const PcaResult& fit, double row_bound) {
  nlohmann::json manifest =
      common_manifest("pca", name(job.method), options_json(job, row_bound), job.privacy, charged, fit.rows);
  manifest["noise_edge"] = fit.noise_edge;
  add_columns(manifest, data.map);
  const auto drowned = (fit.eigenvalues.array() <= fit.noise_edge).count();
  if (drowned > 0)
    manifest["warnings"].push_back(
        fmt::format("{} of the {} components have eigenvalues no larger than noise alone would give: they say nothing "
                    "about the data. Ask for fewer components, or spend more budget.",
                    drowned, job.components));
  return manifest;
}

// Bytes that a method needs besides the rows: a sum a thread, the exact total, the released matrix and its solver.
std::size_t sums_memory(const PcaJob& job, std::size_t d) {
  const std::size_t width = job.method == PcaMethod::kGram ? d : job.components;
  return d * width * sizeof(double) * (static_cast<std::size_t>(thread_count(job.run)) + 6);
}

Status check_outputs(const PcaJob& job) {
  EIGENVEIL_TRY(check_writable(job.out));
  if (!job.report.empty()) EIGENVEIL_TRY(check_writable(job.report));
  return {};
}

// Everything that can be refused without reading a row.
Result<std::size_t> check_shape(const PcaJob& job) {
  if (job.components < 1) return usage_error("--components must be at least 1");
  if (job.method == PcaMethod::kSparsePower && !job.sparsity)
    return usage_error("--method sparse-power needs --sparsity S: how many columns may have a loading");
  if (job.sparsity && job.method != PcaMethod::kGram && job.method != PcaMethod::kSparsePower)
    return usage_error(
        fmt::format("--sparsity does not go with --method {}; use gram or sparse-power", name(job.method)));
  if (job.power.rounds < 1) return usage_error("--rounds must be at least 1");
  const auto opened = open_data(job.rows);
  if (!opened) return opened.error();
  const std::size_t d = opened->map.features();
  if (job.components > d)
    return bad_input(fmt::format("{}: has {} columns, so --components {} is too many; ask for at most {}",
                                 job.rows.data, d, job.components, d));
  if (job.sparsity && (*job.sparsity < job.components || *job.sparsity > d))
    return usage_error(fmt::format("--sparsity {} must lie between --components {} and the {} columns of the data",
                                   *job.sparsity, job.components, d));
  const auto shape = job.report_options.image_shape;
  if (shape && shape->height * shape->width != d)
    return usage_error(fmt::format("--image-shape {}x{} has {} pixels, but the data has {} columns", shape->height,
                                   shape->width, shape->height * shape->width, d));
  return d;
}

}  // namespace

std::string_view name(PcaMethod method) {
  switch (method) {
    case PcaMethod::kGram:
      return "gram";
    case PcaMethod::kPower:
      return "power";
    case PcaMethod::kSparsePower:
      return "sparse-power";
    case PcaMethod::kAdaptivePower:
      return "adaptive-power";
  }
  return "";
}

Result<PcaMethod> pca_method_from_name(std::string_view text) {
  for (const auto method : {PcaMethod::kGram, PcaMethod::kPower, PcaMethod::kSparsePower, PcaMethod::kAdaptivePower})
    if (text == name(method)) return method;
  return usage_error(fmt::format("--method must be gram, power, sparse-power or adaptive-power, but is '{}'", text));
}

Result<PcaOutcome> run_pca(const PcaJob& job, Observer& observer) {
  const auto d = check_shape(job);
  if (!d) return d.error();
  EIGENVEIL_TRY(check_outputs(job));
  auto data = bound_data(job.rows, job.run, sums_memory(job, *d), observer);
  if (!data) return data.error();
  const BoundingDiagnostics diagnostics = data->rows.diagnostics();

  const PcaOptions options{job.components, data->preparation, job.sparsity};
  auto charged = charge(std::move(data->rows), plan_pca(job, options), job.privacy, job.run, job.rows.data,
                        fmt::format("pca --method {} --components {}", name(job.method), job.components), observer);
  if (!charged) return charged.error();
  const auto fit = fit_pca(job, *charged, options);
  if (!fit) return fit.error();
  if (!charged->oracle->complete()) return internal_error("the fit did not ask for all that was planned");

  const double row_bound = charged->oracle->shape().lattice.radius;
  Model model{{{"components", fit->components.transpose()},
               {"eigenvalues", fit->eigenvalues, true},
               {"mean", fit->mean, true},
               {"offset", data->map.offset(), true},
               {"scale", data->map.scale(), true}},
              manifest_json(job, *charged, *data, *fit, row_bound)};
  observer.step("writing model");
  EIGENVEIL_TRY(write_model(model, job.out));
  if (!job.report.empty()) {
    observer.step("writing report");
    EIGENVEIL_TRY(write_text_file(job.report, html_report(model, job.report_options)));
  }
  observer.step("done");
  return PcaOutcome{std::move(model), diagnostics};
}

}  // namespace eigenveil
