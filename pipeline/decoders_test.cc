#include "pipeline/decoders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/testing/golden.h"

namespace tenon::pipeline {
namespace {

constexpr float kLn2 = 0.69314718f;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// An output [1, rows, columns] of zeros; row() gives a row to fill.
struct Table {
  Table(std::string label, int num_rows, int num_columns)
      : name(std::move(label)), rows(num_rows), columns(num_columns) {
    values.assign(std::size_t(rows) * columns, 0.0f);
  }
  void row(int index, const std::vector<float>& given) {
    std::copy(given.begin(), given.end(), values.begin() + std::ptrdiff_t(index) * columns);
  }
  RawOutput output() const { return {name, {1, rows, columns}, values}; }
  std::string name;
  int rows, columns;
  std::vector<float> values;
};

std::vector<RawOutput> outputs(const std::vector<Table>& tables) {
  std::vector<RawOutput> list;
  for (const Table& table : tables) list.push_back(table.output());
  return list;
}

/// A picture of 64 x 128 stretched to a network of 64 x 64: boxes are twice as high in the picture.
Geometry tall() { return *plan_geometry(Resize::kStretch, 64, 128, 64, 64); }

DetectOptions options(float threshold = 0.3f, float nms = 0.5f) { return {threshold, nms, std::nullopt}; }

void expect_box(const Detection& found, int class_id, float score, const std::array<float, 4>& box) {
  EXPECT_EQ(found.class_id, class_id);
  EXPECT_NEAR(found.score, score, 1e-6);
  EXPECT_NEAR(found.box.left, box[0], 1e-4);
  EXPECT_NEAR(found.box.top, box[1], 1e-4);
  EXPECT_NEAR(found.box.width, box[2], 1e-4);
  EXPECT_NEAR(found.box.height, box[3], 1e-4);
}

// 64 x 64: 8 x 8 cells of stride 8, then 4 x 4 of stride 16, then 2 x 2 of stride 32.
TEST(Yolox, GridsOfAllStridesInOneOutput) {
  Table table("output", 64 + 16 + 4, 7);
  table.row(8 * 2 + 3, {0.5f, 0.25f, 0, kLn2, 0.8f, 0.5f, 0.75f});  // stride 8, cell (3, 2)
  table.row(64 + 4 * 3 + 1, {0, 0, kLn2, 0, 0.5f, 0.7f, 0.1f});     // stride 16, cell (1, 3)
  table.row(64 + 16 + 2, {0.5f, 0.5f, 0, 0, 1, 0.3f, 0.2f});        // not greater than the threshold
  const auto found = detect(Decoder::kYolox, outputs({table}), tall(), options());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  // Centre (3.5, 2.25) * 8 = (28, 18), size 8 x 16; twice as high in the picture.
  expect_box((*found)[0], 1, 0.6f, {24, 20, 8, 32});
  // Centre (16, 48), size 32 x 16.
  expect_box((*found)[1], 0, 0.35f, {0, 80, 32, 32});
  EXPECT_FLOAT_EQ((*found)[0].objectness, 0.8f);
}

TEST(Yolox, DoublesOfAClassAreSuppressed) {
  Table table("output", 84, 7);
  table.row(0, {0.5f, 0.5f, kLn2, kLn2, 1, 0.9f, 0});
  table.row(1, {-0.5f, 0.5f, kLn2, kLn2, 1, 0.8f, 0});  // the same box
  table.row(2, {-1.5f, 0.5f, kLn2, kLn2, 1, 0, 0.7f});  // the same box of another class
  const auto found = detect(Decoder::kYolox, outputs({table}), tall(), options());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].class_id, 0);
  EXPECT_EQ((*found)[1].class_id, 1);
}

TEST(Yolox, LetterboxInTheCornerIsTakenBack) {
  // 32 x 16 in 64 x 64 is 64 x 32 in the upper half: net pixels are half picture pixels on both axes.
  const Geometry geometry = *plan_geometry(Resize::kLetterbox, 32, 16, 64, 64, Placement::kTopLeft);
  Table table("output", 84, 6);
  table.row(8 * 2 + 3, {0.5f, 0.5f, 0, 0, 1, 0.9f});  // centre (28, 20), size 8 x 8
  const auto found = detect(Decoder::kYolox, outputs({table}), geometry, options());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  expect_box((*found)[0], 0, 0.9f, {12, 8, 4, 4});
}

TEST(Nanodet, MeanBinsAreDistances) {
  std::vector<Table> tables{{"s8", 64, 2},  {"s16", 16, 2},  {"s32", 4, 2},
                            {"d8", 64, 32}, {"d16", 16, 32}, {"d32", 4, 32}};
  tables[1].row(4 * 1 + 2, {0.2f, 0.9f});  // stride 16, cell (2, 1): centre (39.5, 23.5)
  std::vector<float> bins(32, 0.0f);       // all alike: 3.5
  bins[8 + 1] = 100;                       // top: 1
  bins[16 + 0] = bins[16 + 1] = 100;       // right: 0.5
  bins[24 + 7] = -100;                     // bottom: the mean of 0..6 is 3
  tables[4].row(4 * 1 + 2, bins);
  const auto found = detect(Decoder::kNanodet, outputs(tables), tall(), options());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 1u);
  // Left 39.5 - 56, top 23.5 - 16, right 39.5 + 8, bottom 23.5 + 48.
  expect_box((*found)[0], 1, 0.9f, {-16.5f, 15, 64, 128});
}

TEST(Nanodet, ScoresComeFirstWhenShapesAreEqual) {
  std::vector<Table> tables{{"s8", 64, 32},  {"d8", 64, 32}, {"s16", 16, 32},
                            {"d16", 16, 32}, {"s32", 4, 32}, {"d32", 4, 32}};
  tables[4].values[5] = 0.9f;  // class 5 of stride 32, cell (0, 0): centre (15.5, 15.5), all distances 3.5 * 32
  const auto found = detect(Decoder::kNanodet, outputs(tables), tall(), options());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 1u);
  expect_box((*found)[0], 5, 0.9f, {-96.5f, -193, 224, 448});
}

TEST(Ultraface, CornersInSharesOfTheInput) {
  std::vector<Table> tables{{"boxes", 3, 4}, {"scores", 3, 2}};
  tables[1].row(0, {0.6f, 0.4f});
  tables[1].row(1, {0.1f, 0.9f});
  tables[1].row(2, {0.9f, 0.1f});
  tables[0].row(1, {0.25f, 0.5f, 0.75f, 1});
  tables[0].row(0, {0, 0, 0.125f, 0.25f});
  const auto found = detect(Decoder::kUltraface, outputs(tables), tall(), options());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  expect_box((*found)[0], 0, 0.9f, {16, 64, 32, 64});
  expect_box((*found)[1], 0, 0.4f, {0, 0, 8, 32});
}

std::vector<Table> yunet_tables() {
  std::vector<Table> tables;
  for (const char* kind : {"cls_", "obj_", "bbox_", "kps_"}) {
    const int columns = kind[0] == 'b' ? 4 : kind[0] == 'k' ? 10 : 1;
    for (const auto& [stride, cells] : {std::pair{8, 64}, std::pair{16, 16}, std::pair{32, 4}}) {
      tables.emplace_back(kind + std::to_string(stride), cells, columns);
    }
  }
  return tables;
}

TEST(Yunet, ScoreIsTheGeometricMean) {
  std::vector<Table> tables = yunet_tables();
  tables[2].row(3, {0.5f});   // cls_32, cell (1, 1)
  tables[5].row(3, {0.98f});  // obj_32: sqrt(0.49) = 0.7
  tables[8].row(3, {-0.5f, 0.25f, -kLn2, 0});
  tables[0].row(9, {1.5f});  // cls_8, cell (1, 1), above 1 by an error of the network
  tables[3].row(9, {0.36f});
  const auto found = detect(Decoder::kYunet, outputs(tables), tall(), options());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  expect_box((*found)[0], 0, 0.7f, {8, 48, 16, 64});  // centre (16, 40), size 16 x 32
  expect_box((*found)[1], 0, 0.6f, {4, 8, 8, 16});    // centre (8, 8), size 8 x 8
}

TEST(Decoders, OutputsThatDoNotFitAreListed) {
  const Table table("out", 84, 7), short_table("out", 83, 7);
  const auto message = [](Decoder decoder, const std::vector<Table>& tables) {
    const auto found = detect(decoder, outputs(tables), tall(), options());
    EXPECT_FALSE(found.ok());
    return found.status().message();
  };
  EXPECT_EQ(message(Decoder::kYolox, {short_table}),
            "postprocess.decoder yolox: expected one output [N, 84, 5 + classes] for a network input of 64 x 64, found "
            "the float32 outputs out [1, 83, 7]; choose the decoder of this model, or postprocess type tensors");
  EXPECT_NE(message(Decoder::kYolox, {table, table}).find("found the float32 outputs out [1, 84, 7], out"),
            std::string::npos);
  EXPECT_NE(message(Decoder::kNanodet, {table})
                .find("for stride 8 class scores [N, 64, classes] and distances "
                      "[N, 64, 32]"),
            std::string::npos);
  EXPECT_NE(message(Decoder::kUltraface, {{"scores", 3, 2}, {"boxes", 2, 4}}).find("boxes [1, 2, 4]"),
            std::string::npos);
  std::vector<Table> tables = yunet_tables();
  tables.erase(tables.begin() + 4);  // obj_16
  EXPECT_NE(message(Decoder::kYunet, tables).find("for stride 16 two outputs [N, 16, 1]"), std::string::npos);
  EXPECT_NE(message(Decoder::kYunet, {}).find("found the float32 outputs none"), std::string::npos);
}

TEST(Decoders, OverflowIsAnError) {
  const auto fails = [](Decoder decoder, const std::vector<Table>& tables) {
    const auto found = detect(decoder, outputs(tables), tall(), options());
    EXPECT_FALSE(found.ok());
    EXPECT_NE(found.status().message().find("row 5; the network overflowed"), std::string::npos)
        << found.status().message();
  };
  Table yolox("out", 84, 7);
  yolox.row(5, {0, 0, 0, 0, 1, 0.9f, kNan});
  fails(Decoder::kYolox, {yolox});
  yolox.row(5, {0, 0, 1000, 0, 1, 0.9f, 0});
  fails(Decoder::kYolox, {yolox});
  Table scores("scores", 6, 2), boxes("boxes", 6, 4);
  scores.row(5, {0, kNan});
  fails(Decoder::kUltraface, {scores, boxes});
  std::vector<Table> yunet = yunet_tables();
  yunet[0].row(5, {kNan});
  fails(Decoder::kYunet, yunet);
}

TEST(Decoders, Names) {
  for (const char* name : {"yolox", "nanodet", "ultraface", "yunet"}) {
    ASSERT_TRUE(decoder_named(name).has_value()) << name;
    EXPECT_STREQ(decoder_name(*decoder_named(name)), name);
  }
  EXPECT_FALSE(decoder_named("auto"));
  EXPECT_FALSE(decoder_named("yolo"));
}

TEST(Ultraface, StoredOutputsGiveTheGoldenDetections) {
  const testing::GoldenCase golden{"onnx-ultraface-rfb-320", "astronaut_crop"};
  TENON_NEED_DATA(golden.json_path());
  const nlohmann::json expected = testing::read_json(golden.json_path());
  std::vector<Table> tables;
  for (const auto& [name, tensor] : expected["outputs"].items()) {
    ASSERT_EQ(tensor["stored"], "full");
    tables.emplace_back(name, tensor["shape"][1], tensor["shape"][2]);
    tables.back().values = testing::read_floats(golden.folder() / tensor["file"].get<std::string>());
  }
  // The recipe of the case: score > 0.7, IoU > 0.5; its picture is the crop.
  const Geometry geometry = *plan_geometry(Resize::kNone, 320, 240, 320, 240);
  const auto found = detect(Decoder::kUltraface, outputs(tables), geometry, options(0.7f, 0.5f));
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), expected["detections"].size());
  const std::vector<int> crop = expected["input"]["crop_xywh"];
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::vector<float> box = expected["detections"][i]["box_xyxy_px"];
    expect_box((*found)[i], 0, expected["detections"][i]["score"],
               {box[0] - crop[0], box[1] - crop[1], box[2] - box[0], box[3] - box[1]});
  }
}

}  // namespace
}  // namespace tenon::pipeline
