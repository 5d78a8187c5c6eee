// Tenon's public C++ API: header-only, over the C API of c/tenon.h. Nothing throws; functions give Result<T> or Status.
//
// Objects are cheap handles that share what they refer to; any order of destruction is safe. Threads: Network,
// BuilderConfig and ExecutionContext are used by one thread at a time, each; everything else is thread-safe.
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP

#include <tenon/builder.hpp>
#include <tenon/library.hpp>
#include <tenon/network.hpp>
#include <tenon/runtime.hpp>

#endif  // TENON_TENON_HPP
