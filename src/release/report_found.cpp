// SPDX-License-Identifier: Apache-2.0
// What was found: in words, with verdicts, and in pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "charts.hpp"
#include "directions.hpp"
#include "eigenveil/release/kinds.hpp"
#include "extents.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string figure(const std::string& picture, const std::string& caption) {
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", picture, caption);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> feature_names(const Model& model, Eigen::Index count) {
  std::vector<std::string> names;
  for (Eigen::Index j = 0; j < count; ++j) names.push_back(feature_name(model, j));
  return names;
}

std::string scree(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const Findings found = findings_of(model);
  if (found.empty()) return "";
  auto edge = html::number_at(model.manifest, "noise_edge");
  if (edge) edge = html::within_reach(*edge);
  std::string caption = fmt::format("<b>{}s.</b> {}", html::capitalised(kind.value), kind.meaning);
  if (edge) caption += " Noise alone would typically reach the dashed line: what lies in the shade says little.";
  if (found.banded()) caption += " Bars are 95% bands.";
  return figure(scree_svg(found, edge, kind), caption);
}

std::string biplot(const Model& model) {
  const auto set = directions_of(model, "");
  const ModelKind& kind = kind_of(model.manifest);
  if (!set.ok() || kind.scores.size() != 1 || kind.prediction == Prediction::kNumber || set->rows.rows() < 2) return "";
  const std::vector<std::string> axes = {upper(set->names[0]), upper(set->names[1])};
  return figure(biplot_svg(set->rows.row(0), set->rows.row(1), feature_names(model, set->rows.cols()), axes),
                fmt::format("<b>Biplot.</b> An arrow per feature, from its entries in {} and {}. Features whose arrows "
                            "point the same way go together along these two; no row is drawn here.",
                            axes[0], axes[1]));
}

/// As correlations, if every variance is positive.
std::string heatmap(const Model& model) {
  if (const Matrix* stated = model.array("correlation");
      stated != nullptr && stated->rows() > 1 && stated->rows() == stated->cols())
    return figure(
        heatmap_svg(stated->cwiseMax(-1).cwiseMin(1), feature_names(model, stated->rows()), "Correlations"),
        "<b>Correlations</b> of the features, as their components tell them. White is none, or a feature that "
        "was left out; full colour is one. <span class=\"scale\" aria-hidden=\"true\">below zero <i></i> "
        "above</span>");
  const Matrix* covariance = model.array("covariance");
  if (covariance == nullptr || covariance->rows() < 2 || covariance->rows() != covariance->cols()) return "";
  const Vector variances = covariance->diagonal();
  const auto names = feature_names(model, covariance->rows());
  const std::string scale = " <span class=\"scale\" aria-hidden=\"true\">below zero <i></i> above</span>";
  if (variances.minCoeff() > 0) {
    const Vector deviations = variances.cwiseSqrt();
    Matrix correlation = deviations.cwiseInverse().asDiagonal() * *covariance * deviations.cwiseInverse().asDiagonal();
    correlation = correlation.cwiseMax(-1).cwiseMin(1);
    return figure(heatmap_svg(correlation, names, "Correlations"),
                  "<b>Correlations</b> of the features, from the released covariance. White is none, full colour is "
                  "one." +
                      scale);
  }
  return figure(heatmap_svg(*covariance, names, "Covariance"),
                "<b>Covariances.</b> Some variances are not positive: the noise is as large as they are." + scale);
}

/// Where rows lie along the first two directions, by class if they have one.
std::string scores(const Model& model) {
  const Matrix *counts = model.array("score_counts"), *edges = model.array("score_edges");
  const auto said = model.manifest.is_object() ? model.manifest.find("score_plot") : model.manifest.end();
  if (counts == nullptr || edges == nullptr || said == model.manifest.end()) return "";
  const Eigen::Index m = counts->cols();
  const auto deviation = html::number_at(*said, "deviation");
  const bool even = m > 0 && counts->rows() > 0 && counts->rows() % m == 0 && edges->rows() == 2 &&
                    edges->cols() == m + 1 && (edges->rightCols(m) - edges->leftCols(m)).minCoeff() > 0;
  if (!even || !deviation || !(*deviation > 0)) return "";
  const Eigen::Index classes = counts->rows() / m;
  const auto named = model.manifest.find("classes");
  const bool by_class = named != model.manifest.end() && named->is_array() && std::ssize(*named) == classes;
  const double most = std::max(counts->maxCoeff(), *deviation);
  std::string all;
  for (Eigen::Index c = 0; c < classes; ++c) {
    const auto& name = by_class ? (*named)[c] : nlohmann::json();
    const std::string of = name.is_string() ? name.get<std::string>() : "";
    std::string caption = fmt::format("<b>Where the rows lie{}</b>: noisy counts in {} by {} cells along PC1 and PC2. ",
                                      of.empty() ? "" : ": " + html::name(of), m, m);
    if (c == 0)
      caption += fmt::format(
          "The fullest cell has about {}; cells with less than {}, twice the deviation of the noise, are blank, and "
          "the "
          "outermost hold all beyond. {}",
          whole(most), html::rounded(2 * *deviation), html::escape(said->value("sentence", "")));
    all += figure(density_svg(counts->middleRows(c * m, m), *edges, *deviation, most,
                              of.empty() ? "Density of scores" : "Density of scores: " + of, {"PC1", "PC2"}),
                  caption);
  }
  return all;
}

/// The array of means of groups that the kind has.
const Matrix* group_means(const Model& model) {
  for (const ModelArray& shape : kind_of(model.manifest).arrays)
    if (shape.rows == Extent::kGroups && shape.columns == Extent::kFeatures)
      return model.array(std::string(shape.name));
  return nullptr;
}

std::string centroids(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const auto set = directions_of(model, "");
  const Matrix* means = group_means(model);
  const Matrix* mean = model.array("mean");
  if (!set.ok() || means == nullptr || mean == nullptr) return "";
  const Matrix at = (means->rowwise() - mean->reshaped().transpose()) * set->rows.transpose();
  const Matrix* priors = model.array("priors");
  const Vector weights = priors != nullptr ? Vector(priors->reshaped()) : Vector::Ones(at.rows());
  if (weights.size() != at.rows() || !at.allFinite()) return "";
  std::vector<std::string> names;
  for (const auto& name : model.manifest[std::string(kind.groups)]) names.push_back(name.get<std::string>());
  std::vector<std::string> axes;
  for (const std::string& name : set->names) axes.push_back(upper(name));
  const auto missing = (weights.array() <= 0).count();
  std::string caption =
      fmt::format("<b>Where the {} lie</b>: their means{}; areas go with how many rows each has.", kind.groups,
                  kind.prediction == Prediction::kClass ? ", in units of the spread within one of them" : "");
  if (missing > 0)
    caption += fmt::format(" {} of them {} not drawn: noise hides whether anybody is in {}.", missing,
                           missing == 1 ? "is" : "are", missing == 1 ? "it" : "them");
  return figure(centroids_svg(at, weights, names, axes), caption);
}

/// How long the two heads are along each shared dimension.
std::string heads(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  if (!kind.heads) return "";
  const Matrix* image = model.array("image_weights");
  const Matrix* text = model.array("text_weights");
  if (image == nullptr || text == nullptr || image->rows() != text->rows() || image->rows() == 0) return "";
  Findings found;
  found.values = image->rowwise().norm().cwiseProduct(text->rowwise().norm());
  if (!found.values.allFinite()) return "";
  ModelKind words;
  words.value = "strength";
  words.item = "dimension";
  return figure(
      scree_svg(found, std::nullopt, words),
      "<b>Shared dimensions.</b> The strength of a dimension is the length of the image's head along it times "
      "that of the text's: strong ones decide what is similar.");
}

std::string band(const Findings& found, Eigen::Index k) {
  return found.banded() ? fmt::format("<td class=\"number\">{} to {}</td>", html::rounded(found.low[k]),
                                      html::rounded(found.high[k]))
                        : "";
}

std::string verdict_row(const Findings& found, const ModelKind& kind, Eigen::Index k) {
  std::string row = fmt::format("<tr><th scope=\"row\">{}{}</th>", kind.number, k + 1);
  if (found.judged) {
    const std::string_view word = name(found.verdict(k));
    row += fmt::format("<td><span class=\"chip {0}\">{0}</span></td>", word);
  }
  row += fmt::format("<td class=\"number\">{}</td>", html::rounded(found.shown()[k])) + band(found, k);
  if (found.shares.size() > 0) row += fmt::format("<td class=\"number\">{}</td>", html::percent(found.shares[k]));
  if (found.angle.size() > 0)
    row += fmt::format("<td class=\"number extra\">{}</td>",
                       found.verdict(k) == Worth::kNoise ? "&ndash;" : fmt::format("{:.0f}&deg;", found.angle[k]));
  return row + "</tr>\n";
}

}  // namespace

std::string verdicts_part(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const Findings found = findings_of(model);
  if (found.empty()) return "";
  const Eigen::Index K = found.values.size();
  constexpr Eigen::Index kShown = 12;
  std::string head = fmt::format("<thead><tr><th scope=\"col\">{}</th>", html::capitalised(kind.item));
  if (found.judged) head += "<th scope=\"col\">Verdict</th>";
  head += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", html::capitalised(kind.value));
  if (found.banded()) head += "<th scope=\"col\" class=\"number\">95% band</th>";
  if (found.shares.size() > 0) head += "<th scope=\"col\" class=\"number\">Of all variation</th>";
  if (found.angle.size() > 0) head += "<th scope=\"col\" class=\"number extra\">Angle</th>";
  head += "</tr></thead>\n";
  std::string first;
  std::string rest;
  for (Eigen::Index k = 0; k < K; ++k) (k < kShown ? first : rest) += verdict_row(found, kind, k);
  const std::string table = "<table class=\"verdicts\">\n" + head + "<tbody>\n";
  std::string page = table + first + "</tbody>\n</table>\n";
  if (!rest.empty())
    page += fmt::format("<details>\n<summary>The other {}</summary>\n{}{}</tbody>\n</table>\n</details>\n", K - kShown,
                        table, rest);
  if (found.angle.size() > 0)
    page += fmt::format(
        "<p class=\"note\"><span class=\"extra\">The angle is the one to expect between a released direction and the "
        "true "
        "one.</span>{}</p>\n",
        found.estimate.size() > 0 ? " What noise adds to the released values is taken out of the numbers shown." : "");
  return page;
}

std::string pictures_part(const Model& model) {
  const std::string all =
      scree(model) + scores(model) + biplot(model) + heatmap(model) + centroids(model) + heads(model);
  return all.empty() ? "" : "<div class=\"figures\">\n" + all + "</div>\n";
}

std::string found_section(const Model& model, const ReportOptions& options) {
  const ModelKind& kind = kind_of(model.manifest);
  std::string page;
  const std::string words = found_in_words(findings_of(model), kind, model.manifest);
  if (!words.empty()) page += fmt::format("<p class=\"verdict\">{}</p>\n", words);
  if (kind.heads) page += fmt::format("<p class=\"verdict\">{}</p>\n", kNoVerdict);
  page += estimates_part(model) + pictures_part(model) + verdicts_part(model);
  if (kind.estimates.empty())
    for (const Figure& figure : kind.figures)
      if (const auto value = html::number_at(model.manifest, figure.key); value && *value != 0)
        page += fmt::format("<p class=\"note\">{}</p>\n", fmt::format(fmt::runtime(figure.sentence), *value));
  page += directions_part(model, options);
  return page.empty() ? "" : "<section>\n<h2>What was found</h2>\n" + page + "</section>\n";
}

}  // namespace eigenveil
