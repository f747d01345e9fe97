#include "accuracy.hpp"
namespace eigenveil::bench { void spiked(const Setting& /*setting*/) {} }
