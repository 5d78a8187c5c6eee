// The plain reference of an op, dressed as a kernel: what makes a new op run before anybody wrote a fast kernel for it.
#include <memory>
#include <string>
#include <vector>

#include <tenon/plugin/kernel.h>

#include "core/site/candidate.h"

namespace tenon {
namespace {

struct ReferenceKernel {
  TnKernel kernel{};  // first: callbacks get a pointer to it
  OpRef op;
  std::string name;
};

struct ReferenceInstance {
  OpRef op;
  Attrs attrs;
  std::vector<TnBox> boxes;  // one whole output each
  std::uint32_t num_inputs = 0;
};

const ReferenceKernel& self(const TnKernel* kernel) { return *reinterpret_cast<const ReferenceKernel*>(kernel); }

TnStatus TN_CALL supports(const TnHost* host, const TnKernel*, const TnSite* site) {
  for (std::uint32_t i = 0; i < site->num_inputs + site->num_outputs; ++i) {
    switch (site->dtypes[i]) {
      case TN_DTYPE_NONE:
      case TN_F32:
      case TN_F64:
      case TN_I8:
      case TN_U8:
      case TN_I16:
      case TN_U16:
      case TN_I32:
      case TN_U32:
      case TN_I64:
      case TN_U64:
      case TN_BOOL:
        break;
      default:
        return TN_FAIL(host, TN_DECLINED, "the plain reference computes f32, f64, integers and bool only");
    }
  }
  return TN_OK;
}

TnStatus TN_CALL more_combos(const TnHost*, const TnKernel*, const TnSite* site, TnComboSink* sink) {
  std::vector<TnPort> ports(site->num_inputs + site->num_outputs, TnPort{});
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (site->dtypes[i] == TN_DTYPE_NONE) continue;
    ports[i].dtype = site->dtypes[i];
    ports[i].format = row_format();
  }
  const TnCombo combo{ports.data(), site->num_inputs, site->num_outputs, nullptr, 0, 0};
  return sink->add(sink, &combo);
}

TnStatus TN_CALL configure(const TnHost*, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  const TnSite& site = *config->site;
  auto instance = std::make_unique<ReferenceInstance>();
  instance->op = self(kernel).op;
  instance->attrs = *site.attrs;
  instance->num_inputs = site.num_inputs;
  for (std::uint32_t i = 0; i < site.num_outputs; ++i) {
    const TnDims& dims = site.max_dims[site.num_inputs + site.num_extra + i];
    TnBox box{};
    for (int axis = 0; axis < dims.rank; ++axis) box.size[axis] = dims.d[axis];
    instance->boxes.push_back(box);
  }
  *out = reinterpret_cast<TnInst*>(instance.release());
  return TN_OK;
}

TnStatus TN_CALL enqueue(const TnHost* host, const TnInst* inst, const TnExec*, const TnTensor* inputs,
                         const TnTensor* outputs) {
  const auto& instance = *reinterpret_cast<const ReferenceInstance*>(inst);
  const TnReference call{TN_HEADER(TnReference),
                         instance.num_inputs,
                         static_cast<std::uint32_t>(instance.boxes.size()),
                         0,
                         &instance.attrs,
                         inputs,
                         outputs,
                         instance.boxes.data()};
  return instance.op.op->reference(host, instance.op.op, &call);
}

void TN_CALL destroy(const TnHost*, TnInst* inst) { delete reinterpret_cast<ReferenceInstance*>(inst); }

}  // namespace

KernelRef reference_kernel(const OpRef& op) {
  auto owner = std::make_shared<ReferenceKernel>();
  owner->op = op;
  const std::string id = op.op->id;
  owner->name = id.substr(0, id.rfind('/')) + ".reference";
  TnKernel& kernel = owner->kernel;
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.flags = (op.op->flags & TN_OP_RANDOM) != 0 ? 0u : unsigned{TN_KERNEL_DETERMINISTIC};
  kernel.op_id = op.op->id;
  kernel.name = owner->name.c_str();
  kernel.device = TN_CPU;
  kernel.supports = &supports;
  kernel.more_combos = &more_combos;
  kernel.configure = &configure;
  kernel.enqueue = &enqueue;
  kernel.destroy = &destroy;
  KernelRef ref;
  ref.kernel = &kernel;
  ref.host = op.host;
  ref.library = owner;
  return ref;
}

bool is_reference_kernel(const KernelRef& ref) { return ref.kernel->enqueue == &enqueue; }

}  // namespace tenon
