# How Tenon's own targets are built. Users of the installed package need only TenonPlugin.cmake.

find_package(Threads REQUIRED)

# The flags that all of Tenon's own code shares; PRIVATE to each target, so that nobody inherits them.
# GCC 12 warns of overlapping copies inside std::string that cannot happen (GCC bug 105651).
add_library(tenon_build_flags INTERFACE)
target_compile_options(tenon_build_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<BOOL:${TENON_WARNINGS_AS_ERRORS}>:-Werror>)
if(TENON_SANITIZE)
  # The first report of undefined behaviour ends a test. GCC 12 takes instrumented variables for uninitialised.
  target_compile_options(tenon_build_flags INTERFACE -fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tenon_build_flags INTERFACE -fsanitize=${TENON_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # clang's sanitizers are part of the program, where libraries find them.
    target_link_options(tenon_build_flags INTERFACE -Wl,-z,undefs)
  endif()
endif()

# tenon_add_library(NAME SOURCES a.cc ... [LIBS lib ...] [PRIVATE_LIBS lib ...])
# A static library of the engine; its headers are included as "folder/file.h" from the repository root.
function(tenon_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;PRIVATE_LIBS")
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC tenon_headers ${arg_LIBS} PRIVATE tenon_build_flags ${arg_PRIVATE_LIBS})
endfunction()

# tenon_add_test(NAME SOURCES a_test.cc ... [LIBS lib ...] [LABELS label ...] [ENVIRONMENT K=V ...] [TIMEOUT seconds])
# One GoogleTest program, registered with CTest under its own name.
function(tenon_add_test name)
  if(NOT TENON_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main tenon_build_flags)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "TENON_SOURCE_DIR=${PROJECT_SOURCE_DIR};TENON_BUILD_DIR=${PROJECT_BINARY_DIR};${arg_ENVIRONMENT}")
endfunction()
