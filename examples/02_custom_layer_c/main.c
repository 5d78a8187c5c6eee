/* Runs a network of one hard_tanh layer through the C API.
 *   hard_tanh_demo PLUGIN     the plugin's file */
#include <math.h>
#include <stdio.h>
#include <tenon/c/tenon.h>

#define COUNT 6

static int failed(const char* what) {
  fprintf(stderr, "hard_tanh_demo: %s: %s\n", what, tn_last_error());
  return 1;
}

static int run(TnLibrary* library, TnNetwork* network, TnBuildResult** built, TnEngine** engine, TnContext** context) {
  const TnDims dims = {2, 0, {2, COUNT / 2}};
  float x[COUNT] = {-3, -1, -0.5f, 0, 0.25f, 7};
  const float expected[COUNT] = {-1, -1, -0.5f, 0, 0.25f, 1};
  float y[COUNT] = {0};
  TnTensorId in, out;
  int wrong = 0;

  if (tn_network_add_input(network, "x", TN_F32, &dims, &in)) return failed("input");
  if (tn_network_add_layer(network, "org.example.hard_tanh/1", "squash", NULL, &in, 1, &out, 1)) return failed("layer");
  if (tn_network_rename(network, out, "y")) return failed("rename");
  if (tn_network_mark_output(network, out)) return failed("output");

  if (tn_build(library, network, NULL, built)) return failed("build");
  if (tn_engine_create(library, tn_build_engine_data(*built), tn_build_engine_size(*built), "cpu", 0, engine)) {
    return failed("engine");
  }
  if (tn_context_create(*engine, 1, context)) return failed("context");
  if (tn_context_set_tensor(*context, "x", x, NULL)) return failed("x");
  if (tn_context_set_tensor(*context, "y", y, NULL)) return failed("y");
  if (tn_context_execute(*context)) return failed("execute");
  for (int n = 0; n < COUNT; ++n) {
    printf("hard_tanh(%g) = %g\n", x[n], y[n]);
    wrong += fabsf(y[n] - expected[n]) > 1e-6f;
  }
  return wrong != 0;
}

int main(int argc, char** argv) {
  TnLibrary* library = NULL;
  TnNetwork* network = NULL;
  TnBuildResult* built = NULL;
  TnEngine* engine = NULL;
  TnContext* context = NULL;
  int status;

  if (argc != 2) {
    fprintf(stderr, "usage: hard_tanh_demo PLUGIN\n");
    return 2;
  }
  if (tn_library_create(NULL, &library)) return failed("library");
  if (tn_library_load_plugin(library, argv[1])) {
    status = failed(argv[1]);
  } else if (tn_network_create(library, &network)) {
    status = failed("network");
  } else {
    status = run(library, network, &built, &engine, &context);
  }
  /* NULL is fine, and any order would do. */
  tn_context_release(context);
  tn_engine_release(engine);
  tn_build_release(built);
  tn_network_release(network);
  tn_library_release(library);
  return status;
}
