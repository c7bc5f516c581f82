# find_package(clrsim CONFIG): the target clrsim::clrsim.
# This folder is sim/host/cmake of a checkout, after `cargo build --release -p clr-host`, or lib/cmake/clrsim of a release. The
# library is looked for in CLRSIM_LIBRARY_DIR (a variable, or of the environment), then in the release, then in cargo's
# target/release of the checkout.
get_filename_component(_clrsim_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(NOT EXISTS "${_clrsim_root}/include/clrsim.h")
  get_filename_component(_clrsim_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
endif()
find_library(CLRSIM_LIBRARY
  NAMES clrsim libclrsim.dll.a clrsim.dll.lib
  HINTS "${CLRSIM_LIBRARY_DIR}" "$ENV{CLRSIM_LIBRARY_DIR}" "${_clrsim_root}/lib" "${_clrsim_root}/../../target/release"
  NO_DEFAULT_PATH)
if(NOT CLRSIM_LIBRARY)
  set(clrsim_FOUND FALSE)
  set(clrsim_NOT_FOUND_MESSAGE "there is no libclrsim: run cargo build --release -p clr-host, or set CLRSIM_LIBRARY_DIR")
  return()
endif()
if(NOT TARGET clrsim::clrsim)
  add_library(clrsim::clrsim UNKNOWN IMPORTED)
  set_target_properties(clrsim::clrsim PROPERTIES
    IMPORTED_LOCATION "${CLRSIM_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${_clrsim_root}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
