# SPDX-License-Identifier: Apache-2.0
# Writes a source file with the commit that is checked out: the command of build_info.cmake.
# cmake -DSOURCE=... -DIN=... -DOUT=... -DCOMPILER=... -DENGINES=... -DMODULES=... -P write_build_info.cmake
set(COMMIT unknown)
if(EXISTS ${SOURCE}/.git)  # not that of a repository around an unpacked archive
  execute_process(COMMAND git -C ${SOURCE} describe --always --tags OUTPUT_VARIABLE found RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed STREQUAL "0")
    set(COMMIT ${found})
  elseif(EXISTS ${SOURCE}/.git/logs/HEAD)  # without git, or where it does not trust the folder's owner: the last line says from where to where
    file(READ ${SOURCE}/.git/logs/HEAD log)
    if(log MATCHES "(^|\n)[0-9a-f]+ ([0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])[^\n]*\n?$")
      set(COMMIT ${CMAKE_MATCH_2})
    endif()
  endif()
endif()
configure_file(${IN} ${OUT} @ONLY)
