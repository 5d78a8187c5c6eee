/* Every plugin header. */
#ifndef TENON_PLUGIN_ALL_H
#define TENON_PLUGIN_ALL_H

#include "abi.h"
#include "attributes.h"
#include "ext/code.h"
#include "ext/epilogue.h"
#include "ext/expression.h"
#include "ext/ids.h"
#include "ext/op_importers.h"
#include "ext/parallel.h"
#include "ext/placement.h"
#include "ext/siblings.h"
#include "fusion.h"
#include "graph.h"
#include "host.h"
#include "importer.h"
#include "kernel.h"
#include "op.h"
#include "plugin.h"
#include "site.h"
#include "threads.h"

#endif /* TENON_PLUGIN_ALL_H */
