// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/gep.hpp"

#include "call.hpp"
#include "eigenveil/job/matrices.hpp"

namespace eigenveil {

Gep::Gep(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model), false),
      vectors(array("vectors")),
      eigenvalues(array("eigenvalues").reshaped()),
      eigenvalues_estimate(numbers("eigenvalues_estimate")),
      eigenvalues_low(numbers("eigenvalues_low")),
      eigenvalues_high(numbers("eigenvalues_high")),
      vectors_deviation(array("vectors_deviation")) {}

Result<Gep> Gep::load(const std::string& path) { return front::load<Gep>(path, "gep"); }

Result<Gep> gep(const Rows& A, const Rows& B, const Gep::Options& options, const Spending& spending) {
  return front::publish<Gep>(options.observer, [&](Observer& observer) -> Result<Release> {
    auto privacy = EIGENVEIL_TRY(front::privacy_of(spending));
    auto chosen_gep = EIGENVEIL_TRY(front::gep_of(options));
    auto rows = EIGENVEIL_TRY(front::count(options.rows.value(), "rows"));
    MatricesJob job{.fit = {.rows = {}, .privacy = std::move(privacy), .run = front::run_of(options, spending)},
                    .gep = std::move(chosen_gep),
                    .matrix_a = A.path(),
                    .matrix_b = B.path(),
                    .sensitivity_a = options.sensitivity_a.value(),
                    .sensitivity_b = options.sensitivity_b.value(),
                    .rows = std::move(rows),
                    .given_a = A.given(),
                    .given_b = B.given()};
    if (!options.person.empty()) job.fit.rows.person = PersonOptions{.column = options.person, .stated = true};
    return release(job, observer);
  });
}

}  // namespace eigenveil
