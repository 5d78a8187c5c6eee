/* The ground of the plugin ABI: export macro, status codes, dtypes, formats, and the plain structs that never change.
 *
 * The ABI is C: no C++ type, exception or allocation crosses it. Extensible structs begin with struct_size and a reader
 * asks TN_HAS(p, field) before it reads a field that is younger than minor 0; structs marked "frozen" never change.
 * Version 1 is kept: a plugin built with these headers loads into every later host. */
#ifndef TENON_PLUGIN_ABI_H
#define TENON_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TN_CALL __cdecl
#define TN_EXPORT __declspec(dllexport)
#else
#define TN_CALL
#define TN_EXPORT __attribute__((visibility("default")))
#endif

#define TN_ABI_MAJOR 1u
#define TN_ABI_MINOR_LATEST 0u
/* The oldest minor that a plugin needs. Define it before including to use calls of a younger minor. */
#ifndef TN_USE_MINOR
#define TN_USE_MINOR 0u
#endif

/* First member of every extensible struct: {TN_HEADER(TnOp), ...}. */
#define TN_HEADER(T) ((uint32_t)sizeof(T))
/* True if the struct behind p, as its writer knew it, holds `field`. */
#define TN_HAS(p, field) ((p)->struct_size >= (size_t)((const char*)(&(p)->field + 1) - (const char*)(p)))

/* What a call answers. For anything but TN_OK the callee calls host->fail once, with the reason. */
typedef int32_t TnStatus;
enum {
  TN_OK = 0,
  TN_DECLINED = 1, /* "not by me": a normal answer, its reason is kept for `explain` */
  TN_INVALID = 2,  /* the caller's input is wrong */
  TN_NOMEM = 3,
  TN_NOTFOUND = 4,
  TN_IO = 5,
  TN_DEVICE = 6,
  TN_VERSION = 7,
  TN_INTERNAL = 8,
  TN_CONFLICT = 9,
  TN_CANCELLED = 10
};

/* Element types; the numbers are those of ONNX TensorProto.DataType. 0 means "absent". */
enum {
  TN_DTYPE_NONE = 0,
  TN_F32 = 1,
  TN_U8 = 2,
  TN_I8 = 3,
  TN_U16 = 4,
  TN_I16 = 5,
  TN_I32 = 6,
  TN_I64 = 7,
  TN_STRING = 8,
  TN_BOOL = 9,
  TN_F16 = 10,
  TN_F64 = 11,
  TN_U32 = 12,
  TN_U64 = 13,
  TN_BF16 = 16,
  TN_F8E4M3FN = 17,
  TN_F8E4M3FNUZ = 18,
  TN_F8E5M2 = 19,
  TN_F8E5M2FNUZ = 20,
  TN_U4 = 21,
  TN_I4 = 22,
  TN_F4E2M1 = 23,
  TN_F8E8M0 = 24,
  TN_U2 = 25,
  TN_I2 = 26
};

enum { TN_CPU = 1, TN_CUDA = 2 };                  /* device kinds */
enum { TN_MEMORY_HOST = 1, TN_MEMORY_DEVICE = 2 }; /* memory kinds; on TN_CPU both are ordinary memory */
enum { TN_LOG_ERROR = 0, TN_LOG_WARNING = 1, TN_LOG_INFO = 2, TN_LOG_VERBOSE = 3 };

#define TN_MAX_RANK 8
#define TN_MAX_BLOCKS 4

/* A shape. frozen */
typedef struct TnDims {
  int32_t rank; /* 0 for a scalar */
  int32_t reserved;
  int64_t d[TN_MAX_RANK];
} TnDims;

/* How a tensor lies in memory, by value. frozen */
enum {
  TN_FORMAT_NONE = 0,
  TN_FORMAT_ROW = 1,   /* row-major in the order of the dims, any rank */
  TN_FORMAT_AXES = 2,  /* axes of `order` from outermost to innermost, then the blocks, innermost last */
  TN_FORMAT_OPAQUE = 3 /* a vendor's own, named in `opaque`; it brings kernels of tenon.reformat/1 */
};
enum { TN_PAD_NONE = 0, TN_PAD_ZERO = 1, TN_PAD_UNDEFINED = 2 }; /* contents of the cells that fill the last block */
typedef struct TnFormat {
  uint8_t kind;
  uint8_t padding;
  uint8_t rank;       /* number of entries of `order` */
  uint8_t num_blocks; /* number of entries of block_axis and block_size */
  uint8_t order[TN_MAX_RANK];
  uint8_t block_axis[TN_MAX_BLOCKS];
  uint16_t block_size[TN_MAX_BLOCKS];
  char opaque[32]; /* such as "vendor.x/1", zero-terminated */
} TnFormat;

/* Initialisers for the usual formats. "nchw16c": channels in blocks of 16, the block innermost, filled with zeros. */
/* clang-format off */
#define TN_ROW_INIT {TN_FORMAT_ROW, TN_PAD_NONE, 0, 0, {0}, {0}, {0}, {0}}
#define TN_NHWC_INIT {TN_FORMAT_AXES, TN_PAD_NONE, 4, 0, {0, 2, 3, 1}, {0}, {0}, {0}}
#define TN_NCHW_BLOCKED_INIT(block) {TN_FORMAT_AXES, TN_PAD_ZERO, 4, 1, {0, 1, 2, 3}, {1}, {(block)}, {0}}
/* clang-format on */

/* A tensor as calls see it. strides are in elements, one per logical axis; of a blocked axis it is the distance between
 * two blocks. Without data (shape questions) data is NULL. frozen */
typedef struct TnTensor {
  void* data;
  int32_t dtype;  /* TN_DTYPE_NONE: an optional tensor that is absent */
  int32_t memory; /* TN_MEMORY_HOST or TN_MEMORY_DEVICE */
  TnFormat format;
  TnDims dims;
  int64_t strides[TN_MAX_RANK];
} TnTensor;

/* A box of a tensor: elements start[i] <= index[i] < start[i] + size[i]. frozen */
typedef struct TnBox {
  int64_t start[TN_MAX_RANK];
  int64_t size[TN_MAX_RANK];
} TnBox;

typedef struct TnHost TnHost;
typedef struct TnAttrs TnAttrs; /* the host's, opaque; see attributes.h */
typedef struct TnGraph TnGraph; /* the host's, opaque; see graph.h */
typedef struct TnMatch TnMatch; /* the host's, opaque; see graph.h */
typedef struct TnInst TnInst;   /* the plugin's, opaque to the host; NULL is a valid one */

/* Where a plugin writes its private state; write returns the bytes taken, or -1. */
typedef struct TnWriter {
  uint32_t struct_size;
  void* context;
  int64_t(TN_CALL* write)(struct TnWriter* self, const void* bytes, uint64_t size);
} TnWriter;

/* Where a plugin reads it back; read returns the bytes given, fewer at the end. */
typedef struct TnReader {
  uint32_t struct_size;
  void* context;
  int64_t(TN_CALL* read)(struct TnReader* self, void* bytes, uint64_t size);
} TnReader;

#define TN_STRINGIFY_(x) #x
#define TN_STRINGIFY(x) TN_STRINGIFY_(x)
/* Records why a call fails and returns `code`: return TN_FAIL(host, TN_DECLINED, "needs rank 4"); */
#define TN_FAIL(host, code, message) ((host)->fail((host), (code), __FILE__ ":" TN_STRINGIFY(__LINE__), (message)))

#ifdef __cplusplus
}
#endif
#endif /* TENON_PLUGIN_ABI_H */
