# SPDX-License-Identifier: Apache-2.0
# Rows that others hold: federation (gRPC, protobuf, OpenSSL) and MPI. The core does without; scripts/install-packages
# engines brings what this needs.
find_package(OpenSSL)
find_package(Protobuf)
find_package(gRPC CONFIG QUIET)
find_package(MPI COMPONENTS CXX)
if(NOT (OpenSSL_FOUND AND Protobuf_FOUND AND gRPC_FOUND AND MPI_CXX_FOUND))
  message(STATUS "Without federation and MPI: gRPC, protobuf, OpenSSL or OpenMPI is missing")
  return()
endif()

set(wire_dir ${CMAKE_BINARY_DIR}/wire)
file(MAKE_DIRECTORY ${wire_dir})
set(wire_files wire.pb.cc wire.pb.h wire.grpc.pb.cc wire.grpc.pb.h version1.pb.cc version1.pb.h version1.grpc.pb.cc version1.grpc.pb.h ranks.pb.cc ranks.pb.h)
list(TRANSFORM wire_files PREPEND ${wire_dir}/)
add_custom_command(OUTPUT ${wire_files} DEPENDS src/wire/wire.proto src/wire/version1.proto src/wire/ranks.proto
  COMMAND protobuf::protoc --cpp_out=${wire_dir} --grpc_out=${wire_dir}
          --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> -I ${PROJECT_SOURCE_DIR}/src/wire wire.proto version1.proto ranks.proto)
# Generated code is held to no warnings of ours.
add_library(eigenveil_wire STATIC ${wire_files})
set_target_properties(eigenveil_wire PROPERTIES UNITY_BUILD OFF)
target_include_directories(eigenveil_wire SYSTEM PUBLIC ${wire_dir})
target_link_libraries(eigenveil_wire PUBLIC gRPC::grpc++ protobuf::libprotobuf)

file(GLOB EIGENVEIL_ENGINE_SOURCES CONFIGURE_DEPENDS src/wire/*.cpp src/mpi/*.cpp src/federation/*.cpp)
add_library(eigenveil_engines STATIC ${EIGENVEIL_ENGINE_SOURCES})
set_target_properties(eigenveil_engines PROPERTIES POSITION_INDEPENDENT_CODE ON)  # as the precompiled header that it shares
target_link_libraries(eigenveil_engines
  PUBLIC eigenveil eigenveil_wire
  PRIVATE eigenveil_warnings ${EIGENVEIL_PRIVATE_LIBRARIES} MPI::MPI_CXX OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(eigenveil_engines PUBLIC EIGENVEIL_ENGINES)
target_precompile_headers(eigenveil_engines REUSE_FROM eigenveil)
