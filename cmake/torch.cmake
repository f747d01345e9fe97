# SPDX-License-Identifier: Apache-2.0
# TorchScript modules, in a program of their own that runs them behind a wall (src/torch/sandbox.proof.md). The rest does
# without libtorch; scripts/install-packages torch brings it.
find_path(TORCH_INCLUDE_DIR torch/script.h)
find_library(TORCH_CPU_LIBRARY torch_cpu)
find_library(TORCH_C10_LIBRARY c10)
pkg_check_modules(SECCOMP IMPORTED_TARGET libseccomp)
if(NOT (TORCH_INCLUDE_DIR AND TORCH_CPU_LIBRARY AND TORCH_C10_LIBRARY AND SECCOMP_FOUND) OR EIGENVEIL_SANITIZE)
  message(STATUS "Without clip train and torchscript: encoders: libtorch or libseccomp is missing, or this is a build for sanitizers")
  return()
endif()

file(GLOB EIGENVEIL_MODULE_SOURCES CONFIGURE_DEPENDS src/torch/module/*.cpp)
add_executable(eigenveil_module ${EIGENVEIL_MODULE_SOURCES})
set_target_properties(eigenveil_module PROPERTIES OUTPUT_NAME eigenveil-module
                                                  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
target_include_directories(eigenveil_module SYSTEM PRIVATE ${TORCH_INCLUDE_DIR})
target_compile_definitions(eigenveil_module PRIVATE EIGENVEIL_VERSION="${PROJECT_VERSION}")
target_compile_options(eigenveil_module PRIVATE -ffp-contract=off -O1)  # its work is done in libtorch, whose headers compile slowly
target_link_libraries(eigenveil_module PRIVATE eigenveil_warnings ${TORCH_CPU_LIBRARY} ${TORCH_C10_LIBRARY} fmt::fmt
                                               nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX PkgConfig::SECCOMP)
install(TARGETS eigenveil_module RUNTIME DESTINATION lib/eigenveil)  # where src/torch/process.cpp looks
