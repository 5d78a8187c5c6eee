# The objects of the larger instruction sets must define no symbol that the linker may share with others (weak ones:
# inline functions, templates of the standard library): an older machine would run the copy it cannot execute.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${NM} cannot read ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]* [WVuwv] [^\n]*" weak "${symbols}")
  if(weak)
    message(FATAL_ERROR "${object} defines symbols that may be shared between instruction sets:\n${weak}\n"
      "Make each of them TENON_CPU_INLINE, or move it to a file that is compiled for the baseline.")
  endif()
endforeach()
