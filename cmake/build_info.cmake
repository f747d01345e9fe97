# SPDX-License-Identifier: Apache-2.0
# What `eigenveil version` says. A commit recompiles one small file of the program, and nothing else.
set(build_info ${CMAKE_BINARY_DIR}/build_info.cpp)
set(build_info_inputs ${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake)
if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --git-path logs/HEAD OUTPUT_VARIABLE git_log
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  cmake_path(ABSOLUTE_PATH git_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(EXISTS ${git_log} AND NOT IS_DIRECTORY ${git_log})
    list(APPEND build_info_inputs ${git_log})  # grows whenever another commit is checked out
  endif()
endif()
set(has_engines false)
set(has_modules false)
if(TARGET eigenveil_engines)
  set(has_engines true)
endif()
if(TARGET eigenveil_module)
  set(has_modules true)
endif()
add_custom_command(OUTPUT ${build_info} DEPENDS ${build_info_inputs} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DIN=${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in
          -DOUT=${build_info} "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
          -DENGINES=${has_engines} -DMODULES=${has_modules} -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${build_info})  # configure_file leaves an equal file as old as it is
set_source_files_properties(${build_info} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(eigenveil_app PRIVATE ${build_info})
target_include_directories(eigenveil_app PRIVATE apps/eigenveil)
