#include "eigenveil/estimators/pca/gram.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {

PrivacyPlan plan_gram(Adjacency adjacency, const PcaOptions& options) {
  PrivacyPlan plan{plan_preparation(adjacency, options.preparation, 1.0)};
  plan.events.push_back({"covariance", GaussianEvent{1.0}});
  return plan;
}

Result<PcaResult> fit_gram(Oracle& oracle, const PrivacyPlan& plan, const PcaOptions& options) {
  const RowsShape shape = oracle.shape();
  if (options.components < 1 || options.components > shape.columns)
    return bad_input(fmt::format("--components is {} but the data has {} columns", options.components, shape.columns));
  const auto prepared = prepare(oracle, plan, options.preparation);
  if (!prepared) return prepared.error();

  const PrivacyEvent& event = plan.events.back();
  const auto gram = oracle.ask(event.label, Gram{}, mu_of(event));
  if (!gram) return gram.error();
  auto pairs = top_eigenpairs(gram->value() / prepared->rows, options.components);
  if (!pairs) return pairs.error();
  fix_signs(pairs->vectors);

  // A symmetric noise matrix with entries of deviation sigma has its spectrum within 2 sigma sqrt(d) (Wigner).
  const double sigma = oracle.noise_of(Gram{}, mu_of(event)) / prepared->rows;
  return PcaResult{pairs->vectors, pairs->values, prepared->mean, prepared->rows,
                   2 * sigma * std::sqrt(static_cast<double>(shape.columns))};
}

}  // namespace eigenveil
