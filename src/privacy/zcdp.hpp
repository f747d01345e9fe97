// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The optimal conversion from rho-zCDP (Canonne, Kamath and Steinke 2020, proposition 12; Asoodeh et al. 2020).
namespace eigenveil::zcdp {

/// ln delta at epsilon >= 0, at most 0.
double log_delta(double rho, double epsilon);
/// The smallest epsilon >= 0 at ln delta.
double epsilon(double rho, double log_delta);

}  // namespace eigenveil::zcdp
