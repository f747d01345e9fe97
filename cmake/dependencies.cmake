# SPDX-License-Identifier: Apache-2.0
# Everything from Debian 12; also read by the installed package, so that a consumer links the same libraries.
set(BLA_VENDOR OpenBLAS)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(BLAS REQUIRED)
find_package(LAPACK REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Spectra REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(FastFloat REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
enable_language(C)
find_package(HDF5 REQUIRED COMPONENTS C)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(MPFR REQUIRED IMPORTED_TARGET mpfr)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(LAPACKE REQUIRED IMPORTED_TARGET lapacke)

set(EIGENVEIL_PRIVATE_LIBRARIES
  OpenMP::OpenMP_CXX PkgConfig::LAPACKE LAPACK::LAPACK BLAS::BLAS Spectra::Spectra SQLite::SQLite3 PkgConfig::SODIUM
  PkgConfig::MPFR PkgConfig::LIBZIP PkgConfig::ICU ZLIB::ZLIB PNG::PNG JPEG::JPEG HDF5::HDF5 fmt::fmt
  tomlplusplus::tomlplusplus FastFloat::fast_float Threads::Threads)
