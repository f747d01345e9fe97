// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.hpp"

#include <cfloat>
#include <limits>

// What the proofs beside the code take for granted about doubles (src/privacy/slack.md).
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "Eigenveil must not be compiled with -ffast-math or its parts: its bounds rest on IEEE arithmetic"
#endif
static_assert(std::numeric_limits<double>::is_iec559, "doubles must be those of IEEE 754");
static_assert(FLT_EVAL_METHOD == 0, "doubles must be rounded after every operation, as SSE2 and ARM64 do");

// A function for a machine with fused multiply-add, where contraction would use it.
#if defined(__x86_64__)
#define EIGENVEIL_WITH_FMA __attribute__((target("fma")))
#else
#define EIGENVEIL_WITH_FMA
#endif

namespace eigenveil {
namespace {

EIGENVEIL_WITH_FMA double with_fma(double a, double b, double c) { return a * b - c; }
double without_fma(double a, double b, double c) { return a * b - c; }

bool machine_has_fma() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

}  // namespace

double product_minus(double a, double b, double c) {
  return machine_has_fma() ? with_fma(a, b, c) : without_fma(a, b, c);
}

}  // namespace eigenveil
