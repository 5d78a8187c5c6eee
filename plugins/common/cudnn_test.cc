// What of cuDNN works without a GPU: texts of tactics, descriptors, and the words of its refusals.
#include "plugins/common/cudnn.h"

#include <gtest/gtest.h>

namespace tenon::plugins {
namespace {

TEST(CudnnConfig, ReadsWhatItWrites) {
  for (const CudnnConfig& config : {CudnnConfig{14, {}}, CudnnConfig{0, {{2, 12}}}, CudnnConfig{67, {{2, 5}, {27, 7}}},
                                    CudnnConfig{1, {{2, -1}, {13, 0}, {18, 1}}}}) {
    const CudnnConfig read = CudnnConfig::parse(Params("graph=plain;" + config.text()));
    EXPECT_EQ(read.engine, config.engine);
    EXPECT_EQ(read.knobs, config.knobs) << config.text();
  }
  EXPECT_EQ((CudnnConfig{67, {{2, 5}, {27, 7}}}.text()), "engine=67;knobs=2:5,27:7");
  EXPECT_EQ((CudnnConfig{14, {}}.text()), "engine=14;knobs=");
}

TEST(CudnnConfig, DeclinesOtherText) {
  for (const char* params : {"", "engine=1", "knobs=", "engine=;knobs=", "engine=x;knobs=", "engine=01;knobs=",
                             "engine=1;knobs=2", "engine=1;knobs=2:", "engine=1;knobs=2:3,", "engine=1;knobs=2:3,4",
                             "engine=1;knobs=2:3,,4:5", "engine=1;knobs=2;3", "engine=1;knobs=2:3:4:5",
                             "engine=1;knobs= 2:3", "engine=1;knobs=a:b", "engine=1;knobs=2:99999999999999999999"}) {
    EXPECT_THROW(CudnnConfig::parse(Params(params)), Declined) << params;
  }
}

TEST(CudnnDescriptor, RefusalsCarryTheCause) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  try {
    tensor.finalize();
    FAIL() << "a tensor without dims was accepted";
  } catch (const CudnnError& error) {
    EXPECT_TRUE(error.is_refusal());
    EXPECT_EQ(error.code(), TN_DEVICE);
    EXPECT_NE(std::string(error.what()).find("CUDNN_STATUS_BAD_PARAM"), std::string::npos) << error.what();
  }
  EXPECT_THROW(cudnn_or_decline([&] { tensor.finalize(); }), Declined);
}

TEST(CudnnDescriptor, GivesBackAttributes) {
  CudnnDescriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_TILE_SIZE)
      .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, int64_t{3})
      .finalize();
  const CudnnDescriptor moved = std::move(choice);
  EXPECT_EQ(moved.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE), CUDNN_KNOB_TYPE_TILE_SIZE);
  EXPECT_EQ(moved.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE), 3);
}

}  // namespace
}  // namespace tenon::plugins
