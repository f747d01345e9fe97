#include "accuracy.hpp"
namespace eigenveil::bench { void coherence(const Setting& /*setting*/) {} }
