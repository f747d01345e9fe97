// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels of Eigen's products of doubles, compiled once, in eigen_kernels.cpp, at the library's level of optimisation.
// The precompiled headers include this; without it each source compiles its own, and the program is the same.

#include <Eigen/Core>

namespace eigenveil::kernels {

using Traits = Eigen::internal::gebp_traits<double, double>;
template <int kOrder>
using In = Eigen::internal::const_blas_data_mapper<double, Eigen::Index, kOrder>;
using Out = Eigen::internal::blas_data_mapper<double, Eigen::Index, Eigen::ColMajor>;

}  // namespace eigenveil::kernels

#ifndef EIGENVEIL_KERNEL
#define EIGENVEIL_KERNEL extern template
#endif

namespace Eigen::internal {

EIGENVEIL_KERNEL struct gebp_kernel<double, double, Index, eigenveil::kernels::Out, eigenveil::kernels::Traits::mr,
                                    eigenveil::kernels::Traits::nr, false, false>;
#define EIGENVEIL_PACK(order)                                                                                         \
  EIGENVEIL_KERNEL struct gemm_pack_lhs<double, Index, eigenveil::kernels::In<order>, eigenveil::kernels::Traits::mr, \
                                        eigenveil::kernels::Traits::LhsProgress,                                      \
                                        eigenveil::kernels::Traits::LhsPacket4Packing, order>;                        \
  EIGENVEIL_KERNEL struct gemm_pack_rhs<double, Index, eigenveil::kernels::In<order>, eigenveil::kernels::Traits::nr, \
                                        order>;
EIGENVEIL_PACK(ColMajor)
EIGENVEIL_PACK(RowMajor)
#undef EIGENVEIL_PACK

#define EIGENVEIL_PRODUCT(left, right) \
  EIGENVEIL_KERNEL struct general_matrix_matrix_product<Index, double, left, false, double, right, false, ColMajor, 1>;
EIGENVEIL_PRODUCT(ColMajor, ColMajor)
EIGENVEIL_PRODUCT(ColMajor, RowMajor)
EIGENVEIL_PRODUCT(RowMajor, ColMajor)
EIGENVEIL_PRODUCT(RowMajor, RowMajor)
#undef EIGENVEIL_PRODUCT

#define EIGENVEIL_TIMES_VECTOR(order, vector, version)                                                              \
  EIGENVEIL_KERNEL struct general_matrix_vector_product<Index, double, eigenveil::kernels::In<order>, order, false, \
                                                        double, eigenveil::kernels::In<vector>, false, version>;
EIGENVEIL_TIMES_VECTOR(RowMajor, ColMajor, 0)
EIGENVEIL_TIMES_VECTOR(RowMajor, RowMajor, 1)
EIGENVEIL_TIMES_VECTOR(ColMajor, RowMajor, 0)
#undef EIGENVEIL_TIMES_VECTOR

}  // namespace Eigen::internal

#undef EIGENVEIL_KERNEL
