# What `cmake --install` puts where. Everything is found relative to everything else, so a prefix can be moved.
#   component headers   include/tenon, and lib/cmake/Tenon with Tenon::headers and tenon_add_plugin; needs no build
#   component runtime   libtenon, the programs, the plugins, and Tenon::tenon

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

set_target_properties(tenon_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS tenon_headers EXPORT TenonHeaders)
install(EXPORT TenonHeaders FILE TenonHeaders.cmake NAMESPACE Tenon:: DESTINATION ${package} COMPONENT headers)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES cmake/TenonConfig.cmake cmake/TenonPlugin.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake
  DESTINATION ${package} COMPONENT headers)

install(TARGETS tenon EXPORT TenonRuntime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT runtime)
install(EXPORT TenonRuntime FILE TenonRuntime.cmake NAMESPACE Tenon:: DESTINATION ${package} COMPONENT runtime)
foreach(program tenon_cli tenon_plugin)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
endforeach()

# Where registry/discovery.cc looks. A library that a plugin links may lie beside libtenon.
get_property(plugins GLOBAL PROPERTY TENON_PLUGIN_TARGETS)
if(plugins)
  set_target_properties(${plugins} PROPERTIES INSTALL_RPATH "$ORIGIN/../..")
  install(TARGETS ${plugins} LIBRARY DESTINATION lib/tenon/plugins COMPONENT runtime)
endif()
