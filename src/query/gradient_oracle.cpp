// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/gradient_oracle.hpp"

#include <algorithm>

#include "eigenveil/privacy/poisson_sample.hpp"

namespace eigenveil {

Result<GradientOracle> GradientOracle::make(Reservation& reservation, std::size_t rows, std::size_t entries,
                                            double clip, SecureRandom random, const std::string& label,
                                            long long answered, const std::vector<std::uint32_t>& person,
                                            std::size_t least_rows) {
  if (!person.empty() && person.size() != rows) return internal_error("the rows do not say whose they are");
  if (reservation.plan().adjacency != Adjacency::kAddRemoveOne)
    return internal_error("Poisson samples are accounted for add-remove-one neighbours alone");
  EIGENVEIL_TRY(NoisyVector::check(clip, entries, 1));
  GradientOracle oracle(reservation, rows, entries, clip, std::move(random));
  for (std::size_t i = 0; i < person.size(); ++i) {
    if (person[i] >= oracle.rows_of_.size()) oracle.rows_of_.resize(person[i] + 1);
    oracle.rows_of_[person[i]].push_back(i);
  }
  if (!person.empty()) oracle.rows_ = oracle.rows_of_.size();
  oracle.least_rows_ = least_rows;
  for (long long i = 0; i < answered; ++i)
    if (const auto passed = oracle.meter_.poisson(label); !passed) return passed.error();
  return oracle;
}

Result<Released<Matrix>> GradientOracle::ask(const std::string& label, const Function& vector) {
  const auto noise = EIGENVEIL_TRY(meter_.poisson(label));
  if (!answering_) EIGENVEIL_TRY(reservation_->begin_answering());
  answering_ = true;
  const auto sample = EIGENVEIL_TRY(PoissonSample::of(noise.q));
  sample.draw(rows_, random_, chosen_);
  if (!rows_of_.empty()) {
    std::size_t kept = 0;
    for (const std::size_t person : chosen_) {
      const std::vector<std::size_t>& own = rows_of_[person];
      const std::size_t of = std::max(own.size(), least_rows_);
      const std::size_t i = of > 1 ? random_.below(of) : 0;
      if (i < own.size()) chosen_[kept++] = own[i];
    }
    chosen_.resize(kept);
  }
  const std::uint64_t seed = random_.next();
  const auto v = EIGENVEIL_TRY(chosen_.empty() ? Result(std::vector<double>(entries_)) : vector(chosen_, seed));
  if (v.size() != entries_) return internal_error("a gradient has another length than the parameters");
  return NoisyVector::release(v, clip_, noise.sigma, random_);
}

}  // namespace eigenveil
