#include "accuracy.hpp"
namespace eigenveil::bench { void real_data(const Setting& /*setting*/) {} }
