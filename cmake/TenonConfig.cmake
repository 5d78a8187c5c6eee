# find_package(Tenon) gives
#   Tenon::headers     what a plugin includes
#   Tenon::tenon       the engine, where it is installed
#   tenon_add_plugin   builds a plugin library; see TenonPlugin.cmake
include(${CMAKE_CURRENT_LIST_DIR}/TenonHeaders.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TenonPlugin.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TenonRuntime.cmake OPTIONAL)

get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(TARGET Tenon::tenon AND "CXX" IN_LIST languages)
  set_property(TARGET Tenon::tenon APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)  # tenon.hpp
endif()
unset(languages)
