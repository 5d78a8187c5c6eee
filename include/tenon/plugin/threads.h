/* Thread and state tags. Each function of the ABI ends its comment with one of them.
 *
 * [scan]  any process, under 50 ms, no side effects: no allocation, no device, no file.
 * [load]  once per registry, one thread at a time.
 * [build] concurrent over different sites; pure: the same question gets the same answer.
 * [inst]  never concurrent on one instance.
 * [run]   concurrent on one const instance, each call with its own context and workspace; no allocation, lock,
 *         synchronisation or I/O.
 * [any]   any thread at any time between load and unload.
 *
 * Order of calls on an instance:
 *   configure or deserialize -> sizes -> initialize -> (set_shapes, enqueue*)* -> terminate -> destroy
 *   serialize at any time between initialize and terminate.
 * The host guarantees that all streams are idle before terminate. Whoever allocates frees. Registered structs and their
 * strings stay valid until unload; pointers in call arguments die when the call returns unless the function says
 * otherwise; device memory belongs to the host. */
#ifndef TENON_PLUGIN_THREADS_H
#define TENON_PLUGIN_THREADS_H
#endif /* TENON_PLUGIN_THREADS_H */
