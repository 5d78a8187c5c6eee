# tenon_add_plugin(NAME SOURCES a.c b.cc c.cu ... [LIBS lib ...] [OUTPUT_DIRECTORY dir])
#
# Builds NAME.tnp.so from C11, C++17 or CUDA sources that see only Tenon's plugin headers. Inside the tree it is placed
# where the programs find it; outside, in the current binary directory unless OUTPUT_DIRECTORY says otherwise.
function(tenon_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_DIRECTORY" "SOURCES;LIBS")
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin(${name}): SOURCES is empty; name at least one C, C++ or CUDA file")
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    if(TENON_PLUGIN_OUTPUT_DIRECTORY)
      set(arg_OUTPUT_DIRECTORY ${TENON_PLUGIN_OUTPUT_DIRECTORY})
      set_property(GLOBAL APPEND PROPERTY TENON_PLUGIN_TARGETS ${name})  # what Tenon installs
    endif()
  endif()
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    message(STATUS "tenon_add_plugin(${name}): CMAKE_BUILD_TYPE is empty, so its kernels are compiled without optimisation; "
      "-DCMAKE_BUILD_TYPE=Release is what you want")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  # A project may have enabled only one of the languages.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST languages)
    target_compile_features(${name} PRIVATE c_std_11)
  endif()
  if("CXX" IN_LIST languages)
    target_compile_features(${name} PRIVATE cxx_std_17)
  endif()
  if("CUDA" IN_LIST languages)
    target_compile_features(${name} PRIVATE cuda_std_17)
  endif()
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".tnp.so" LIBRARY_OUTPUT_DIRECTORY ${arg_OUTPUT_DIRECTORY}
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  # Symbols that are unique across libraries would keep the plugin mapped after its unload.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>
    $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-fno-gnu-unique>)
  target_link_options(${name} PRIVATE -Wl,--no-undefined)
  target_link_libraries(${name} PRIVATE Tenon::headers ${arg_LIBS})
endfunction()
