// SPDX-License-Identifier: Apache-2.0
#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "html.hpp"

namespace eigenveil {
namespace {

Vector vector_of(const Model& model, const std::string& name, Eigen::Index length) {
  const Matrix* found = model.array(name);
  if (found == nullptr || found->size() != length || !found->allFinite()) return {};
  return found->reshaped();
}

/// Of all views, one direction per row: the entries of the other view are zero. Nothing if any is missing.
Matrix deviations_of(const Model& model, const ModelKind& kind, Eigen::Index K) {
  std::vector<Matrix> parts;
  Eigen::Index features = 0;
  for (const Scores& set : kind.scores) {
    const Matrix* stored = model.array(fmt::format("{}_deviation", set.directions));
    if (stored == nullptr || !stored->allFinite()) return {};
    const bool across = std::any_of(kind.arrays.begin(), kind.arrays.end(), [&](const ModelArray& shape) {
      return shape.name == set.directions && shape.columns == Extent::kDirections;
    });
    parts.push_back(across ? Matrix(stored->transpose()) : *stored);
    if (parts.back().rows() != K) return {};
    features += parts.back().cols();
  }
  Matrix all = Matrix::Zero(K * parts.size(), features);
  Eigen::Index column = 0;
  for (std::size_t i = 0; i < parts.size(); column += parts[i].cols(), ++i)
    all.block(i * K, column, K, parts[i].cols()) = parts[i];
  return all;
}

/// "1", "1 and 2", "1 to 3"
std::string range_in_words(Eigen::Index first, Eigen::Index last) {
  if (first == last) return fmt::format("{}", first);
  return last == first + 1 ? fmt::format("{} and {}", first, last) : fmt::format("{} to {}", first, last);
}

std::string subject(const ModelKind& kind, Eigen::Index first, Eigen::Index last) {
  return fmt::format("{}{} {}", html::capitalised(kind.item), first == last ? "" : "s", range_in_words(first, last));
}

std::string clause(Worth verdict, bool one) {
  switch (verdict) {
    case Worth::kHolds:
      return one ? "holds" : "hold";
    case Worth::kPlane:
      return "hold together, as a plane: each by itself may be turned within it";
    case Worth::kWeak:
      return one ? "exists, but its direction is not determined" : "exist, but their directions are not determined";
    case Worth::kNoise:
      return "cannot be told from noise";
    case Worth::kUnknown:
      break;
  }
  return "";
}

}  // namespace

std::string_view name(Worth verdict) {
  switch (verdict) {
    case Worth::kHolds:
      return "holds";
    case Worth::kPlane:
      return "plane";
    case Worth::kWeak:
      return "weak";
    case Worth::kNoise:
      return "noise";
    case Worth::kUnknown:
      break;
  }
  return "";
}

Findings findings_of(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  Findings found;
  const Matrix* values = kind.values.empty() ? nullptr : model.array(std::string(kind.values));
  if (values == nullptr || values->size() == 0 || !values->allFinite()) return found;
  found.values = values->reshaped();
  const Eigen::Index K = found.values.size();
  found.low = vector_of(model, fmt::format("{}_low", kind.values), K);
  found.high = vector_of(model, fmt::format("{}_high", kind.values), K);
  found.angle = vector_of(model, "angle", K);
  found.shares = vector_of(model, "variance_share", K);
  found.estimate = vector_of(model, fmt::format("{}_estimate", kind.values), K);
  found.deviation = deviations_of(model, kind, K);
  const Vector codes = vector_of(model, "verdict", K);
  found.judged = codes.size() == K;
  for (Eigen::Index k = 0; k < codes.size(); ++k) {
    const bool known = codes[k] >= 0 && codes[k] <= 3 && codes[k] == std::floor(codes[k]);
    found.judged &= known;
    found.verdicts.push_back(known ? static_cast<Worth>(static_cast<int>(codes[k]) + 1) : Worth::kUnknown);
  }
  const Vector last = vector_of(model, "verdict_last", K);
  for (Eigen::Index k = 0; k < last.size(); ++k)
    found.last.push_back(last[k] >= 1 && last[k] <= static_cast<double>(K) ? static_cast<Eigen::Index>(last[k]) - 1
                                                                           : k);
  return found;
}

double Findings::shrunk(Eigen::Index k) const {
  if (angle.size() == 0) return 1;
  return std::cos(std::clamp(angle[k % angle.size()], 0.0, 90.0) * std::numbers::pi / 180);
}

std::string found_in_words(const Findings& found, const ModelKind& kind, const nlohmann::json& manifest) {
  if (found.empty()) return "";
  const Eigen::Index K = found.values.size();
  if (!found.judged) {
    const auto edge = html::number_at(manifest, "noise_edge");
    if (!edge || !(*edge > 0)) return std::string(kNoVerdict);
    const auto above = (found.values.array() > *edge).count();
    if (K == 1)
      return fmt::format("The {} lies {} what noise alone would give. {}", kind.value,
                         above == 1 ? "above" : "no higher than", kNoVerdict);
    return fmt::format("Of {} {}s, {} {} above what noise alone would give. {}", K, kind.value, above,
                       above == 1 ? "lies" : "lie", kNoVerdict);
  }
  std::string words;
  for (Eigen::Index first = 0; first < K;) {
    Eigen::Index last = first;
    const bool plane = found.verdict(first) == Worth::kPlane && !found.last.empty();
    if (plane)  // neighbouring planes are told apart
      last = std::max(first, found.last[first]);
    else
      while (last + 1 < K && found.verdict(last + 1) == found.verdict(first)) ++last;
    words += fmt::format("{}{} {}.", words.empty() ? "" : " ", subject(kind, first + 1, last + 1),
                         clause(found.verdict(first), first == last));
    first = last + 1;
  }
  const auto verdicts = manifest.find("verdicts");
  const auto explained = verdicts != manifest.end() && verdicts->is_object() && verdicts->contains("explained")
                             ? (*verdicts)["explained"]
                             : nlohmann::json();
  if (const auto value = html::number_at(explained, "value"))
    words += fmt::format(" All together have {} of the total variation.", html::percent(*value));
  return words;
}

}  // namespace eigenveil
