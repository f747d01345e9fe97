#include "eigenveil/job/manifest.hpp"

#include "eigenveil/release/model.hpp"

namespace eigenveil {
namespace {

const char* name(Center center) {
  return center == Center::kNone ? "none" : center == Center::kRange ? "range" : "private";
}

const char* name(RowFilter filter) {
  return filter == RowFilter::kOff ? "off" : filter == RowFilter::kShrink ? "shrink" : "drop";
}

void add_power(nlohmann::json& options, const PcaProgram& program) {
  options["rounds"] = program.power.rounds;
  if (program.calibration == Calibration::kPaper) return;
  const RowFilter filter = program.method == PcaMethod::kPower ? RowFilter::kOff : program.power.filter;
  options["filter"] = name(filter);
  if (filter != RowFilter::kOff) options["grid_ratio"] = program.power.grid_ratio;
}

void add_spiked(nlohmann::json& options, const SpikedOptions& spiked) {
  options["guarantee"] = spiked.guarantee == Guarantee::kModel ? "model" : "strict";
  if (spiked.rank) options["rank"] = *spiked.rank;
  if (spiked.noise_variance) options["noise_variance"] = *spiked.noise_variance;
  if (spiked.guarantee == Guarantee::kModel) {
    options["c2"] = spiked.c2;
    options["c3"] = spiked.c3;
    if (spiked.spike) options["spike"] = *spiked.spike;
  } else {
    options["subspace"] = spiked.subspace == Subspace::kGram ? "gram" : "adaptive-power";
  }
}

}  // namespace

const char* version() { return EIGENVEIL_VERSION; }

nlohmann::json manifest_json(const std::string& model, const std::string& method, const PrivacyOptions& privacy,
                             const ChargedOracle& charged, const BoundedData& data, double rows) {
  nlohmann::json manifest = privacy_json(privacy, charged);
  manifest["eigenveil"] = version();
  manifest["model"] = model;
  manifest["method"] = method;
  manifest["features"] = data.map.feature_names();
  manifest["columns"] = columns_to_json(data.map.specs());
  manifest[privacy.adjacency == Adjacency::kReplaceOne ? "rows" : "noisy_rows"] = static_cast<long long>(rows);
  return manifest;
}

nlohmann::json row_options_json(const RowOptions& rows, double row_bound) {
  return {{"center", name(rows.center)},
          {"missing", rows.missing == MissingPolicy::kError ? "error" : "zero-row"},
          {"row_bound", row_bound},
          {"row_bound_kind", rows.private_row_bound ? "private" : "public"}};
}

nlohmann::json program_json(const PcaProgram& program) {
  nlohmann::json options = {{"components", program.options.components},
                            {"calibration", program.calibration == Calibration::kTight ? "tight" : "paper"}};
  if (program.options.sparsity) options["sparsity"] = *program.options.sparsity;
  if (program.method == PcaMethod::kSpiked)
    add_spiked(options, program.spiked);
  else if (program.method != PcaMethod::kGram)
    add_power(options, program);
  return options;
}

}  // namespace eigenveil
