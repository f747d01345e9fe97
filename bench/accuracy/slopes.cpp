#include "accuracy.hpp"
namespace eigenveil::bench { void slopes(const Setting& /*setting*/) {} }
