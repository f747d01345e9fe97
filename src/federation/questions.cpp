// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/questions.hpp"

#include <fmt/format.h>

#include "kinds.hpp"

namespace eigenveil::federation {
namespace {

using wire::v2::Kind;

void add(const std::string& label, const Question& question, std::uint32_t columns, double mu, long long count,
         wire::v2::Proposal& proposal) {
  const KindFacts& known = facts(question.kind);
  auto* ask = proposal.add_plan();
  ask->set_label(label);
  ask->set_kind(question.kind);
  ask->set_rows(columns);
  // How many directions there are may itself be learnt from answers (a rank): no more than columns.
  ask->set_columns(known.width == Width::kDirections ? columns : known.width == Width::kClasses ? question.classes : 0);
  ask->set_grid(known.grid ? kMostGrid : 0);
  ask->set_classes(known.classes ? question.classes : 0);
  ask->set_mu(mu);
  ask->set_count(static_cast<std::uint32_t>(count));
}

}  // namespace

Questions questions_of_estimators() {
  return [](const std::string& label, Kind after, std::uint32_t classes) -> std::optional<Question> {
    if (label == "row count") return Question{Kind::CLASS_COUNTS, 1};
    if (label == "column sums") return Question{Kind::CLASS_SUMS, 1, Kind::RECENTER};
    if (label == "refined column sums") return Question{Kind::CLASS_SUMS, 1, Kind::RECENTER};
    if (label == "row bound" || label == "rough row bound" || label == "first row bound")
      return Question{Kind::NORM_COUNTS, 0, Kind::RECENTER};
    if (label == "covariance") return Question{Kind::GRAM};
    if (label == "radius") return Question{Kind::NORM_COUNTS};
    if (label == "eigenvalues") return Question{Kind::PROJECTED_GRAM};
    if (label == "trace") return Question{Kind::SQUARED_NORMS};
    if (label.starts_with("threshold ")) return Question{Kind::SEARCH};
    if (label.starts_with("product ")) return Question{after == Kind::SEARCH ? Kind::PRODUCT : Kind::APPLY};
    if (label.starts_with("products ")) return Question{Kind::APPLY};
    if (label.ends_with(" counts")) return Question{Kind::CLASS_COUNTS, classes};
    if (label.ends_with(" sums")) return Question{Kind::CLASS_SUMS, classes};
    return std::nullopt;
  };
}

PrivacyPlan for_sites(PrivacyPlan plan) {
  for (PrivacyEvent& event : plan.events)
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism))
      event.mechanism = GaussianEvent{pure->epsilon.value()};
  return plan;
}

Status describe(const PrivacyPlan& plan, std::uint32_t columns, std::uint32_t classes, const Questions& questions,
                wire::v2::Proposal& proposal) {
  Kind after = Kind::KIND_UNKNOWN;
  for (const PrivacyEvent& event : plan.events) {
    const auto question = questions(event.label, after, classes);
    const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism);
    if (!question || gaussian == nullptr || event.count > UINT32_MAX)
      return internal_error(fmt::format("'{}' is no question that sites know", event.label));
    add(event.label, *question, columns, gaussian->mu, event.count, proposal);
    after = question->kind;
    if (question->then == Kind::KIND_UNKNOWN) continue;
    if (event.count != 1) return internal_error(fmt::format("rows move after '{}', which is asked again", event.label));
    add(question->then == Kind::MAP ? kMapRows : kRecentre, {question->then}, columns, 0, 1, proposal);
  }
  return {};
}

}  // namespace eigenveil::federation
