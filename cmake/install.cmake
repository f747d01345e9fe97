# SPDX-License-Identifier: Apache-2.0
# cmake --install gives find_package(eigenveil) with the target eigenveil::eigenveil, and the program.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/eigenveil)
install(TARGETS eigenveil EXPORT eigenveil-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS eigenveil_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY scripts/encoders DESTINATION ${CMAKE_INSTALL_DATADIR}/eigenveil USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/eigenveil)
# What is installed is the interface: the umbrella header and all that it includes.
set(headers eigenveil/eigenveil.hpp)
set(unread ${headers})
while(unread)
  list(POP_FRONT unread header)
  file(STRINGS include/${header} included REGEX "^#include \"eigenveil/")
  list(TRANSFORM included REPLACE "^#include \"(.*)\".*$" "\\1")
  list(REMOVE_ITEM included ${headers})
  list(APPEND headers ${included})
  list(APPEND unread ${included})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/${header})
  cmake_path(GET header PARENT_PATH room)
  install(FILES include/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${room})
endwhile()
install(EXPORT eigenveil-targets NAMESPACE eigenveil:: DESTINATION ${package_dir})
file(WRITE ${CMAKE_BINARY_DIR}/eigenveil-config.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake\")\ninclude(\"\${CMAKE_CURRENT_LIST_DIR}/eigenveil-targets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/eigenveil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/eigenveil-config.cmake ${CMAKE_BINARY_DIR}/eigenveil-config-version.cmake
  cmake/dependencies.cmake DESTINATION ${package_dir})
