# CUDA, if a toolkit is found. Sets TENON_HAVE_CUDA, and enables the language and finds the runtime where it is true.

set(TENON_CUDA AUTO CACHE STRING "Build the CUDA kernels: ON, OFF, or AUTO (if a toolkit is found)")
set_property(CACHE TENON_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TENON_HAVE_CUDA OFF)

if(TENON_CUDA AND TENON_SANITIZE)
  message(STATUS "CUDA: off, sanitizer builds do without")  # nvcc's host code is not instrumented
elseif(TENON_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(TENON_NVCC nvcc HINTS ${CUDAToolkit_ROOT} $ENV{CUDA_PATH} PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(TENON_NVCC)
    if(TENON_NVCC)
      set(ENV{CUDACXX} ${TENON_NVCC})  # so that check_language tries it
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "Machine code for each; PTX of the one without -real")
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(TENON_HAVE_CUDA ON)
    set(CMAKE_CUDA_STANDARD 17)
    message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, "
      "architectures ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(TENON_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: off, no working nvcc found (-DTENON_CUDA=ON makes this an error)")
  else()
    message(FATAL_ERROR "TENON_CUDA is ON, but no working nvcc was found; set CMAKE_CUDA_COMPILER or CUDACXX")
  endif()
endif()

# What TenonTargets' tenon_build_flags are to C++: nvcc's generated host code breaks -Wpedantic and -Wshadow.
add_library(tenon_cuda_flags INTERFACE)
target_compile_options(tenon_cuda_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TENON_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings -Xcompiler=-Werror>)

# tenon_add_cuda_library(NAME SOURCES a.cu ... [LIBS lib ...])
# A static library of device code; its headers are included as "folder/file.h" from the repository root. Whoever links
# it takes only the object files it calls.
function(tenon_add_cuda_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC CUDA::cudart_static ${arg_LIBS} PRIVATE tenon_cuda_flags)
  set_target_properties(${name} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static CUDA_SEPARABLE_COMPILATION OFF)
endfunction()
