# TorchScript modules, in a plugin that the program loads when it needs one. The rest does without;
# scripts/install-packages torch brings libtorch.
find_path(TORCH_INCLUDE_DIR torch/script.h)
find_library(TORCH_CPU_LIBRARY torch_cpu)
find_library(TORCH_C10_LIBRARY c10)
if(NOT (TORCH_INCLUDE_DIR AND TORCH_CPU_LIBRARY AND TORCH_C10_LIBRARY) OR EIGENVEIL_SANITIZE)
  message(STATUS "Without clip train and torchscript: encoders: libtorch is missing, or this is a build for sanitizers")
  return()
endif()

add_library(eigenveil_torch MODULE src/torch/plugin.cpp)
set_target_properties(eigenveil_torch PROPERTIES PREFIX "" OUTPUT_NAME eigenveil-torch CXX_VISIBILITY_PRESET hidden
                                                 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
target_include_directories(eigenveil_torch PRIVATE include)
target_include_directories(eigenveil_torch SYSTEM PRIVATE ${TORCH_INCLUDE_DIR})
target_compile_definitions(eigenveil_torch PRIVATE EIGENVEIL_VERSION="${PROJECT_VERSION}")
target_compile_options(eigenveil_torch PRIVATE -ffp-contract=off -O1)  # its work is done in libtorch, whose headers compile slowly
target_link_libraries(eigenveil_torch PRIVATE eigenveil_warnings ${TORCH_CPU_LIBRARY} ${TORCH_C10_LIBRARY} fmt::fmt
                                              OpenMP::OpenMP_CXX)
install(TARGETS eigenveil_torch LIBRARY DESTINATION lib/eigenveil)  # where src/torch/load.cpp looks
