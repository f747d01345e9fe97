#include <eigenveil/privacy/accountant.hpp>
#include <iostream>

int main() {
  using namespace eigenveil;
  const PrivacyPlan shape(Adjacency::kReplaceOne, {{"covariance", GaussianEvent{1.0}}});
  const auto plan = calibrate(shape, *Epsilon::of(1), *Delta::of(1e-6));
  std::cout << "epsilon " << *epsilon_of(plan->events, *Delta::of(1e-6)) << '\n';
}
