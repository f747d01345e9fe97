// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "given.hpp"

namespace eigenveil::python {

extern const std::map<std::string, Adjacency> kAdjacencies;
extern const std::map<std::string, Accounting> kAccountings;

// The options of each call, by the names that its struct has for them.
Pca::Options pca_options(Given& given);
Covariance::Options covariance_options(Given& given);
Regress::Options regress_options(Given& given);
Cca::Options cca_options(Given& given);
Fda::Options fda_options(Given& given);
Sir::Options sir_options(Given& given);
Gep::Options gep_options(Given& given);
Clip::Options clip_options(Given& given);
Spending spending_of(Given& given);

}  // namespace eigenveil::python
