// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything a program needs for private spectral learning of rows in memory, from a stream or from a file:
//   const auto pca = eigenveil::pca(X, {.components = 10, .row_bound = 1.5},
//                                   {.epsilon = 1, .delta = 1e-6, .ledger = eigenveil::Ledger::none()});
// This header and those that it includes are the interface of the library; no other is installed.

#include "eigenveil/base/interrupted.hpp"
#include "eigenveil/data/arrow.hpp"
#include "eigenveil/data/joined_source.hpp"
#include "eigenveil/front/account.hpp"
#include "eigenveil/front/any_model.hpp"
#include "eigenveil/front/cca.hpp"
#include "eigenveil/front/clip.hpp"
#include "eigenveil/front/cost.hpp"
#include "eigenveil/front/covariance.hpp"
#include "eigenveil/front/fda.hpp"
#include "eigenveil/front/forecast.hpp"
#include "eigenveil/front/gep.hpp"
#include "eigenveil/front/pca.hpp"
#include "eigenveil/front/regress.hpp"
#include "eigenveil/front/sir.hpp"
