// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/front/cca.hpp"
#include "eigenveil/front/clip.hpp"
#include "eigenveil/front/covariance.hpp"
#include "eigenveil/front/fda.hpp"
#include "eigenveil/front/gep.hpp"
#include "eigenveil/front/pca.hpp"
#include "eigenveil/front/regress.hpp"
#include "eigenveil/front/sir.hpp"

namespace eigenveil {

/// What a ledger would be charged for a call: every noisy answer, with the noise that the budget asks for.
struct Cost {
  struct Answer {
    std::string label;
    std::string mechanism;  ///< "gaussian:mu=0.2,count=8", as `account` takes it
  };
  std::string method;
  std::string purpose;  ///< what the ledger would remember
  double epsilon;       ///< certified, at `delta`
  double delta;
  std::vector<Answer> answers;
  bool model_based;  ///< the guarantee would rest on a model of the rows
};

/// One per way to do what is asked: several where a forecast decides. The rows are opened for their columns, and none
/// of them is read; nothing is charged. `expected`: how many there will be, where that is public.
Result<std::vector<Cost>> pca_cost(const Rows& rows, const Pca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> covariance_cost(const Rows& rows, const Covariance::Options& options,
                                          const Spending& spending, std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> regress_cost(const Rows& rows, const Regress::Options& options, const Spending& spending,
                                       std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> cca_cost(const Rows& rows, const Cca::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> fda_cost(const Rows& rows, const Fda::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> sir_cost(const Rows& rows, const Sir::Options& options, const Spending& spending,
                                   std::optional<Eigen::Index> expected = {});
Result<std::vector<Cost>> clip_cost(const Rows& X, const Rows& Y, const Clip::Options& options,
                                    const Spending& spending, std::optional<Eigen::Index> expected = {});

}  // namespace eigenveil
