// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/cost.hpp"

#include "call.hpp"
#include "eigenveil/intake/charge.hpp"

namespace eigenveil {
namespace {

Result<Cost> cost_of(const Estimator& estimator, const RowsShape& shape, const PrivacyOptions& privacy) {
  const Budget budget{privacy.epsilon, privacy.delta, privacy.adjacency, privacy.accounting};
  EIGENVEIL_TRY(estimator.check(shape, budget));
  const auto draft = EIGENVEIL_TRY(estimator.plan(shape, budget));
  const auto certified = EIGENVEIL_TRY(certify(draft, largest_sensitivity(shape.lattice), privacy));
  Cost cost{estimator.describe(),      estimator.purpose(), certified.epsilon, privacy.delta.value(), {},
            certified.plan.model_based};
  for (const PrivacyEvent& event : certified.plan.events) cost.answers.push_back({event.label, to_text(event)});
  return cost;
}

}  // namespace

Result<std::vector<Cost>> front::costs(const Result<Study>& made, std::optional<Eigen::Index> expected) {
  if (!made) return made.error();
  const FitJob& job = made->job;
  const auto opened = EIGENVEIL_TRY(open_data(job.rows, thread_count(job.run)));
  const auto rivals = EIGENVEIL_TRY(made->rivals(opened));
  EIGENVEIL_TRY(check(job, rivals, opened));
  const auto rows = EIGENVEIL_TRY(front::count(expected, "rows"));
  const auto bound = EIGENVEIL_TRY(first_bound(job.rows, opened.map));
  std::vector<Cost> all;
  for (const auto& one : rivals.estimators) {
    const RowsShape shape{opened.map.features(), rows, {bound.value(), 20}, job.privacy.adjacency};
    all.push_back(EIGENVEIL_TRY(cost_of(*one, shape, job.privacy)));
  }
  return all;
}

}  // namespace eigenveil
