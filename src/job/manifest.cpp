#include "eigenveil/job/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

const char* name(Center center) {
  return center == Center::kNone ? "none" : center == Center::kRange ? "range" : "private";
}

const char* name(RowFilter filter) {
  return filter == RowFilter::kOff ? "off" : filter == RowFilter::kShrink ? "shrink" : "drop";
}

void add_power(nlohmann::json& options, const PcaProgram& program, Calibration calibration) {
  options["rounds"] = program.power.rounds;
  if (calibration == Calibration::kPaper) return;
  const RowFilter filter = program.method == PcaMethod::kPower ? RowFilter::kOff : program.power.filter;
  options["filter"] = name(filter);
  if (filter != RowFilter::kOff) options["grid_ratio"] = program.power.grid_ratio;
}

void add_spiked(nlohmann::json& options, const SpikedOptions& spiked) {
  options["guarantee"] = spiked.guarantee == Guarantee::kModel ? "model" : "strict";
  if (spiked.rank) options["rank"] = *spiked.rank;
  if (spiked.noise_variance) options["noise_variance"] = *spiked.noise_variance;
  if (spiked.guarantee == Guarantee::kModel) {
    if (spiked.spike) options["spike"] = *spiked.spike;
  } else {
    options["subspace"] = spiked.subspace == Subspace::kGram ? "gram" : "adaptive-power";
  }
}

// Who paid, and whether anything limits what is paid. Each site of a federation has a ledger of its own.
void add_ledger(nlohmann::json& manifest, const PrivacyOptions& privacy, const Charge& charge) {
  nlohmann::json& ledger = manifest["ledger"] = {{"used", privacy.use_ledger}};
  // The name of a data set is the analyst's own; the path of a file is nobody else's business.
  if (charge.limited || !privacy.dataset.empty()) ledger["dataset"] = charge.dataset;
  if (charge.federation) return;
  ledger["limited"] = charge.limited;
  auto& warnings = manifest["warnings"];
  if (charge.limited && privacy.dataset.empty())
    warnings.push_back(fmt::format("Charged to the data set '{}', which this data belongs to.", charge.dataset));
  if (!charge.limited)
    warnings.push_back(fmt::format("This release is outside any budget: no budget limits releases of this data{}.",
                                   privacy.use_ledger ? ", they are only recorded" : ", and no ledger counts them"));
}

}  // namespace

nlohmann::json program_json(const PcaProgram& program, Calibration calibration) {
  nlohmann::json options = {{"components", program.options.components}};
  if (program.options.sparsity) options["sparsity"] = *program.options.sparsity;
  if (program.method == PcaMethod::kSpiked)
    add_spiked(options, program.spiked);
  else if (program.method != PcaMethod::kGram)
    add_power(options, program, calibration);
  return options;
}

const char* guarantee_flag(const SpikedOptions& spiked) {
  return spiked.guarantee == Guarantee::kModel ? " --guarantee model" : "";
}

nlohmann::json spiked_rates_json(const PcaResult& pca, double noise_variance, const Budget& budget) {
  const auto r = static_cast<double>(pca.components.cols());
  const double spike = std::max(0.0, pca.eigenvalues[0] - noise_variance);
  const double rate = spiked_rate(pca.rows, static_cast<double>(pca.components.rows()), r, spike, noise_variance,
                                  budget.epsilon, budget.delta);
  return {{"spectral", rate}, {"frobenius", std::sqrt(r) * rate}, {"nuclear", r * rate}};
}

void add_assumed(nlohmann::json& manifest, const AssumedSensitivity& assumed) {
  manifest["assumed_sensitivity"] = {{"projector", assumed.bound.projector},
                                     {"sum", assumed.bound.sum},
                                     {"failure_probability", assumed.failure},
                                     {"confidence", assumed.confidence},
                                     {"data_sets", assumed.draws}};
  manifest["warnings"].push_back(
      fmt::format("Model-based guarantee: one row is assumed to move the projector by at most {:.4g} and the sum of u "
                  "u^T by at most "
                  "{:.4g}. These were the farthest in {} data sets drawn from the spiked model.",
                  assumed.bound.projector, assumed.bound.sum, assumed.draws));
}

const char* version() { return EIGENVEIL_VERSION; }

nlohmann::json row_options_json(const RowOptions& rows, double row_bound) {
  return {{"center", name(rows.center)},
          {"missing", rows.missing == MissingPolicy::kError ? "error" : "zero-row"},
          {"row_bound", row_bound},
          {"row_bound_kind", rows.private_row_bound ? "private" : "public"}};
}

namespace {

// Spare rounds count whether or not a site was lost.
std::vector<PrivacyEvent> charged_events(const Charge& charge) {
  std::vector<PrivacyEvent> events = charge.plan.events;
  events.insert(events.end(), charge.spares.begin(), charge.spares.end());
  return events;
}

}  // namespace

nlohmann::json common_manifest(std::string_view model, std::string_view method, nlohmann::json options,
                               const PrivacyOptions& privacy, const Charge& charge, double rows) {
  nlohmann::json manifest = {
      {"eigenveil", version()},
      {"model", model},
      {"method", method},
      {"options", std::move(options)},
      {"adjacency", name(privacy.adjacency)},
      {"epsilon", privacy.epsilon.value()},
      {"delta", privacy.delta.value()},
      {"certified_epsilon", charge.certified_epsilon},
      {"accounting", privacy.accounting == Accounting::kTight ? "tight" : "zcdp"},
      {"events", events_to_json(charged_events(charge))},
      {"guarantee", guarantee_in_words(privacy, charge)},
      {"private", charge.secure},
      {"warnings", nlohmann::json::array()},
  };
  add_ledger(manifest, privacy, charge);
  if (charge.federation) manifest["federation"] = *charge.federation;
  manifest[privacy.adjacency == Adjacency::kReplaceOne ? "rows" : "noisy_rows"] = static_cast<long long>(rows);
  if (privacy.calibration == Calibration::kPaper) {
    manifest["calibration"] = "paper";
    const bool more = charge.certified_epsilon > privacy.epsilon.value();
    manifest["warnings"].push_back(
        fmt::format("{}: the noise is what the paper prescribes for epsilon {:g}; our accountant certifies {:.4g}.",
                    more ? "Paper calibration, not certified" : "Paper calibration", privacy.epsilon.value(),
                    charge.certified_epsilon));
  }
  manifest["guarantee_kind"] = charge.plan.model_based ? "model" : "strict";
  if (!charge.secure) manifest["warnings"].push_back("The noise was seeded: this release is NOT PRIVATE.");
  return manifest;
}

void add_columns(nlohmann::json& manifest, const ColumnMap& map) {
  manifest["features"] = map.feature_names();
  manifest["columns"] = columns_to_json(map.specs());
}

}  // namespace eigenveil
