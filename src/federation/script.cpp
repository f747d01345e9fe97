// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/script.hpp"

#include <fmt/format.h>

#include <utility>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/chain.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "kinds.hpp"

namespace eigenveil::federation {
namespace {

using wire::v2::Kind;

Kind kind_of(const wire::v2::SumQuery& sum) {
  using Case = wire::v2::SumQuery::KindCase;
  switch (sum.kind_case()) {
    case Case::kGram:
      return Kind::GRAM;
    case Case::kApply:
      return Kind::APPLY;
    case Case::kClassSums:
      return Kind::CLASS_SUMS;
    case Case::kClassCounts:
      return Kind::CLASS_COUNTS;
    case Case::kSquaredNorms:
      return Kind::SQUARED_NORMS;
    case Case::kProjectedGram:
      return Kind::PROJECTED_GRAM;
    case Case::kSoftmaxGradient:
      return Kind::SOFTMAX_GRADIENT;
    case Case::kScoreCounts:  // no question for sites
    case Case::KIND_NOT_SET:
      break;
  }
  return Kind::KIND_UNKNOWN;
}

struct Size {
  std::uint64_t columns = 0;
  std::uint64_t grid = 0;
  std::uint64_t classes = 0;
};

Size size_of(const wire::v2::SumQuery& sum) {
  using Case = wire::v2::SumQuery::KindCase;
  switch (sum.kind_case()) {
    case Case::kApply:
      return {.columns = sum.apply().x().columns()};
    case Case::kProjectedGram:
      return {.columns = sum.projected_gram().x().columns()};
    case Case::kSoftmaxGradient:
      return {.columns = sum.softmax_gradient().w().columns()};
    case Case::kClassSums:
      return {.classes = sum.class_sums().classes()};
    case Case::kClassCounts:
      return {.classes = sum.class_counts().classes()};
    case Case::kGram:
    case Case::kSquaredNorms:
    case Case::kScoreCounts:
    case Case::KIND_NOT_SET:
      break;
  }
  return {};
}

Size size_of(const wire::v2::Ask& ask) {
  using wire::v2::Ask;
  switch (ask.kind_case()) {
    case Ask::kSum:
      return size_of(ask.sum());
    case Ask::kExceedance:
      return {ask.exceedance().x().columns(), static_cast<std::uint64_t>(ask.exceedance().grid_size()), 0};
    case Ask::kSearch:
      return {ask.search().x().columns(), static_cast<std::uint64_t>(ask.search().grid_size()), 0};
    case Ask::kProduct:
      return {ask.product().x().columns(), static_cast<std::uint64_t>(ask.product().grid_size()), 0};
    case Ask::kRecenter:
      return {ask.recenter().map().columns(), 0, 0};
    case Ask::KIND_NOT_SET:
      break;
  }
  return {};
}

bool fits(const wire::v2::Ask& ask, const wire::v2::PlannedAsk& planned) {
  const Size size = size_of(ask);
  return size.columns <= planned.columns() && size.grid <= planned.grid() && size.classes == planned.classes();
}

Error beyond(const std::string& why) { return bad_input("the coordinator asks beyond the plan: " + why); }

}  // namespace

const char* name(Kind kind) { return facts(kind).name; }

Kind kind_from_name(std::string_view text) {
  for (const KindFacts& known : kKinds)
    if (text == known.name) return known.kind;
  return Kind::KIND_UNKNOWN;
}

Kind kind_of(const wire::v2::Ask& ask) {
  using wire::v2::Ask;
  switch (ask.kind_case()) {
    case Ask::kSum:
      return kind_of(ask.sum());
    case Ask::kExceedance:
      return Kind::NORM_COUNTS;
    case Ask::kSearch:
      return Kind::SEARCH;
    case Ask::kProduct:
      return Kind::PRODUCT;
    case Ask::kRecenter:
      return ask.recenter().has_map() ? Kind::MAP : Kind::RECENTER;
    case Ask::KIND_NOT_SET:
      break;
  }
  return Kind::KIND_UNKNOWN;
}

bool moves_rows(Kind kind) { return facts(kind).moves_rows; }

Result<PrivacyPlan> charged_plan(const wire::v2::Proposal& proposal) {
  const auto adjacency = adjacency_from_name(proposal.adjacency());
  if (!adjacency) return bad_input("its adjacency is not known");
  PrivacyPlan plan(*adjacency);
  double largest = 0;
  for (const auto& ask : proposal.plan()) {
    const std::string label = printable(ask.label());
    if (std::string_view(name(ask.kind())) == "unknown" || ask.count() < 1)
      return bad_input(fmt::format("its plan has '{}', which is of no known kind or count", label));
    if (moves_rows(ask.kind())) {
      if (ask.mu() != 0) return bad_input(fmt::format("its plan has noise for '{}', where nothing is answered", label));
      continue;
    }
    const auto mu = Mu::of(ask.mu());
    if (!mu) return bad_input(fmt::format("its plan has no proper noise for '{}': {}", label, mu.error().message));
    plan.events.push_back({ask.label(), GaussianEvent{*mu}, ask.count()});
    largest = std::max(largest, mu->value());
  }
  if (plan.events.empty()) return bad_input("its plan answers nothing");
  if (proposal.spares() == 0) return plan;
  const auto mu = Mu::of(proposal.spare_mu());
  if (!mu || !(mu->value() >= largest)) return bad_input("its spare rounds cost less than what they may repeat");
  plan.events.push_back({kSpareRounds, GaussianEvent{*mu}, proposal.spares()});
  return plan;
}

Result<Script> Script::of(const wire::v2::Proposal& proposal) {
  if (const auto plan = charged_plan(proposal); !plan) return plan.error();
  return Script(proposal);
}

std::string question_of(wire::v2::Ask ask) {
  ask.clear_number();
  ask.clear_prev();
  ask.clear_among();
  ask.clear_repeats();
  return canonical_bytes(ask);
}

Result<std::optional<Mu>> Script::next(const wire::v2::Ask& ask) {
  if (failed_) return beyond("an earlier ask was none of it");
  auto turn = ask.repeats() != 0 ? repeat(ask) : proceed(ask);
  if (!turn) {
    failed_ = true;
    return turn.error();
  }
  question_ = question_of(ask);
  number_ = ask.number();
  repeatable_ = *turn;
  return turn;
}

// A round that not all sites answered: the same question, of fewer sites, with noise of its own.
Result<std::optional<Mu>> Script::repeat(const wire::v2::Ask& ask) {
  if (ask.repeats() != number_ || ask.number() != number_ + 1 || !repeatable_)
    return beyond("a spare round repeats the answer before it, and there is none");
  if (question_of(ask) != question_) return beyond("a spare round has other parameters than what it repeats");
  if (spares_left_ == 0) return beyond("a spare round that is not in the plan");
  --spares_left_;
  return repeatable_;
}

Result<std::optional<Mu>> Script::proceed(const wire::v2::Ask& ask) {
  const std::string label = printable(ask.label());
  if (event_ == proposal_.plan_size()) return beyond(fmt::format("'{}' comes after its last answer", label));
  const auto& planned = proposal_.plan(event_);
  if (ask.label() != planned.label() || kind_of(ask) != planned.kind())
    return beyond(fmt::format("next is '{}' ({}), not '{}' ({})", printable(planned.label()), name(planned.kind()),
                              label, name(kind_of(ask))));
  if (!fits(ask, planned)) return beyond(fmt::format("'{}' is of another size", label));
  if (++answered_ == planned.count()) {
    ++event_;
    answered_ = 0;
  }
  if (moves_rows(planned.kind())) return std::optional<Mu>();
  const auto mu = EIGENVEIL_TRY(Mu::of(planned.mu()));
  return std::optional<Mu>(mu);
}

}  // namespace eigenveil::federation
