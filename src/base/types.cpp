#include "eigenveil/base/types.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil::tag {

bool Epsilon::valid(double value) { return std::isfinite(value) && value > 0; }
std::string Epsilon::refusal(double value) {
  return fmt::format("Epsilon must be finite and positive, but is {}", value);
}

bool Delta::valid(double value) { return value > 0 && value < 1; }
std::string Delta::refusal(double value) {
  return fmt::format("Delta must lie strictly between 0 and 1, but is {}; a common choice is below 1 / number of rows",
                     value);
}

bool RowBound::valid(double value) { return value >= 1e-100 && value <= 1e100; }
std::string RowBound::refusal(double value) {
  return fmt::format("The row bound must lie between 1e-100 and 1e100, but is {}", value);
}

}  // namespace eigenveil::tag
