# cmake --install gives find_package(eigenveil) with the target eigenveil::eigenveil, and the program.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/eigenveil)
install(TARGETS eigenveil EXPORT eigenveil-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS eigenveil_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/eigenveil)
install(DIRECTORY include/eigenveil DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        PATTERN wire EXCLUDE PATTERN mpi EXCLUDE PATTERN federation EXCLUDE)  # parts of the program, not of the library
install(EXPORT eigenveil-targets NAMESPACE eigenveil:: DESTINATION ${package_dir})
file(WRITE ${CMAKE_BINARY_DIR}/eigenveil-config.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake\")\ninclude(\"\${CMAKE_CURRENT_LIST_DIR}/eigenveil-targets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/eigenveil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/eigenveil-config.cmake ${CMAKE_BINARY_DIR}/eigenveil-config-version.cmake
  cmake/dependencies.cmake DESTINATION ${package_dir})
