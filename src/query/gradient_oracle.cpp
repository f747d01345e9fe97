// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/gradient_oracle.hpp"

#include <algorithm>

#include "eigenveil/privacy/poisson_sample.hpp"

namespace eigenveil {

Result<GradientOracle> GradientOracle::make(Reservation& reservation, std::size_t rows, std::size_t entries,
                                            SecureRandom random, long long answered,
                                            const std::vector<std::uint32_t>& person, std::size_t least_rows) {
  if (!person.empty() && person.size() != rows) return internal_error("the rows do not say whose they are");
  const PrivacyPlan& plan = reservation.plan();
  if (plan.adjacency != Adjacency::kAddRemoveOne)
    return internal_error("Poisson samples are accounted for add-remove-one neighbours alone");
  GradientOracle oracle(reservation, rows, entries, std::move(random));
  for (std::size_t i = 0; i < person.size(); ++i) {
    if (person[i] >= oracle.rows_of_.size()) oracle.rows_of_.resize(person[i] + 1);
    oracle.rows_of_[person[i]].push_back(i);
  }
  if (!person.empty()) oracle.rows_ = oracle.rows_of_.size();
  oracle.least_rows_ = least_rows;
  for (const PrivacyEvent& event : plan.events) {
    PrivacyPlan own(plan.adjacency, {event});
    if (!oracle.meters_.try_emplace(event.label, std::move(own)).second)
      return internal_error("a plan of gradients has two events of one label");
  }
  for (auto& [label, meter] : oracle.meters_)
    for (long long i = 0; i < answered; ++i)
      if (const auto passed = meter.poisson(label); !passed) return passed.error();
  return oracle;
}

Result<NoiseMultiplier> GradientOracle::begin(const std::string& label, double clip) {
  EIGENVEIL_TRY(NoisyVector::check(clip, entries_, 1));
  const auto found = meters_.find(label);
  if (failed_ || found == meters_.end()) {
    failed_ = true;
    return internal_error("the privacy meter refused an answer: the plan has none of this label");
  }
  const auto planned = found->second.poisson(label);
  failed_ = !planned.ok();
  const auto noise = EIGENVEIL_TRY(planned);
  if (!answering_) EIGENVEIL_TRY(reservation_->begin_answering());
  answering_ = true;
  const auto sample = EIGENVEIL_TRY(PoissonSample::of(noise.q));
  sample.draw(rows_, random_, chosen_);
  if (rows_of_.empty()) return noise.sigma;
  std::size_t kept = 0;
  for (const std::size_t person : chosen_) {
    const std::vector<std::size_t>& own = rows_of_[person];
    const std::size_t of = std::max(own.size(), least_rows_);
    const std::size_t i = of > 1 ? random_.below(of) : 0;
    if (i < own.size()) chosen_[kept++] = own[i];
  }
  chosen_.resize(kept);
  return noise.sigma;
}

Result<Released<Matrix>> GradientOracle::ask(const std::string& label, double clip, const Function& vector) {
  const auto sigma = EIGENVEIL_TRY(begin(label, clip));
  const std::uint64_t seed = random_.next();
  const auto v = EIGENVEIL_TRY(chosen_.empty() ? Result(std::vector<double>(entries_)) : vector(chosen_, seed));
  if (v.size() != entries_) return internal_error("a gradient has another length than the parameters");
  return NoisyVector::release(v, clip, sigma, random_);
}

Result<Released<Matrix>> GradientOracle::ask_each(const std::string& label, double clip, std::size_t at_once,
                                                  const EachFunction& vectors) {
  const auto sigma = EIGENVEIL_TRY(begin(label, clip));
  ClippedSum sum(entries_, clip);
  for (std::size_t first = 0; first < chosen_.size(); first += std::max<std::size_t>(1, at_once)) {
    const std::size_t last = std::min(chosen_.size(), first + std::max<std::size_t>(1, at_once));
    const std::vector<std::size_t> rows(chosen_.begin() + first, chosen_.begin() + last);
    // One for each row, whatever its place: noisy_vector.proof.md.
    std::vector<std::uint64_t> seeds(rows.size());
    for (std::uint64_t& seed : seeds) seed = random_.next();
    const auto given = EIGENVEIL_TRY(vectors(rows, seeds));
    if (given.size() != rows.size() * entries_)
      return internal_error("gradients have another length than the parameters");
    for (std::size_t i = 0; i < rows.size(); ++i) sum.add({given.data() + i * entries_, entries_});
  }
  return std::move(sum).release(sigma, random_);
}

bool GradientOracle::complete() const {
  return !failed_ &&
         std::all_of(meters_.begin(), meters_.end(), [](const auto& meter) { return meter.second.complete(); });
}

}  // namespace eigenveil
