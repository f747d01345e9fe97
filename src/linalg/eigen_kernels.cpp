// SPDX-License-Identifier: Apache-2.0
#define EIGENVEIL_KERNEL template
#include "eigen_kernels.hpp"
