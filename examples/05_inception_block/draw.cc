#include "draw.h"

#include <algorithm>
#include <map>
#include <sstream>

using nlohmann::json;

namespace {

constexpr int kBoxWidth = 150, kBoxHeight = 38, kGapX = 14, kGapY = 34, kTop = 60;
constexpr std::size_t kLetters = 23;  // that fit into a box

struct Box {
  json layer;
  bool view = false;
  int row = 0, column = 0;
};

// "a+b+c" is too long for a box: the first and the last of the names. Conversions between formats are made of no node.
std::string label(const json& layer) {
  const json& members = layer["fused_from"];
  if (members.empty()) return "to " + layer["format"].get<std::string>();
  const std::string first = members.front(), last = members.back();
  const std::string text = members.size() < 2 ? first : first + (members.size() > 2 ? " .. " : " + ") + last;
  return text.size() <= kLetters ? text : text.substr(0, kLetters - 2) + "..";
}

std::string op_name(const json& layer) {
  const std::string id = layer["op"];
  return id.substr(id.find('.') + 1, id.find('/') - id.find('.') - 1);
}

// Every layer stands below those whose results it reads.
std::vector<Box> place(const json& report) {
  std::vector<Box> boxes;
  for (const char* kind : {"layers", "views"}) {
    for (const json& layer : report[kind]) boxes.push_back({layer, kind == std::string("views")});
  }
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.layer["step"] < b.layer["step"]; });
  std::map<std::string, int> rows;  // of the producer of each tensor
  std::map<int, int> columns;       // taken in each row
  for (Box& box : boxes) {
    for (const std::string input : box.layer["inputs"]) {
      const auto producer = rows.find(input);
      if (producer != rows.end()) box.row = std::max(box.row, producer->second + 1);
    }
    for (const std::string output : box.layer["outputs"]) rows[output] = box.row;
    box.column = columns[box.row]++;
  }
  return boxes;
}

int x_of(const Box& box) { return box.column * (kBoxWidth + kGapX); }
int y_of(const Box& box) { return kTop + box.row * (kBoxHeight + kGapY); }

void draw_line(std::ostream& out, const Box& from, const Box& to) {
  const int x1 = x_of(from) + kBoxWidth / 2, y1 = y_of(from) + kBoxHeight;
  const int x2 = x_of(to) + kBoxWidth / 2, y2 = y_of(to);
  out << "<path d='M" << x1 << ' ' << y1 << " C" << x1 << ' ' << y1 + kGapY << ' ' << x2 << ' ' << y2 - kGapY << ' '
      << x2 << ' ' << y2 << "' fill='none' stroke='#8894a0'/>\n";
}

void draw_box(std::ostream& out, const Box& box) {
  const int x = x_of(box), y = y_of(box), middle = x + kBoxWidth / 2;
  out << "<rect x='" << x << "' y='" << y << "' width='" << kBoxWidth << "' height='" << kBoxHeight << "' rx='5' "
      << (box.view ? "fill='#fff' stroke='#8894a0' stroke-dasharray='5 4'" : "fill='#dcecf9' stroke='#2f6f9f'")
      << "/>\n<text x='" << middle << "' y='" << y + 16 << "' text-anchor='middle' font-weight='bold'>"
      << op_name(box.layer) << (box.view ? " (view)" : "") << "</text>\n<text x='" << middle << "' y='" << y + 31
      << "' text-anchor='middle'>" << label(box.layer) << "</text>\n";
}

}  // namespace

std::string draw(const std::vector<std::pair<std::string, json>>& reports) {
  std::ostringstream body;
  int left = 20, height = 0;
  for (const auto& [title, report] : reports) {
    const std::vector<Box> boxes = place(report);
    int width = kBoxWidth;
    body << "<g transform='translate(" << left << ",0)'>\n<text y='30' font-size='16'>" << title << ": "
         << report["layers"].size() << " launches</text>\n";
    for (const Box& box : boxes) {
      width = std::max(width, x_of(box) + kBoxWidth);
      height = std::max(height, y_of(box) + kBoxHeight);
      for (const std::string output : box.layer["outputs"]) {
        for (const Box& reader : boxes) {
          const json& inputs = reader.layer["inputs"];
          if (std::find(inputs.begin(), inputs.end(), output) != inputs.end()) draw_line(body, box, reader);
        }
      }
    }
    for (const Box& box : boxes) draw_box(body, box);
    body << "</g>\n";
    left += width + 60;
  }
  std::ostringstream out;
  out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << left - 40 << "' height='" << height + 20
      << "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='#fff'/>\n"
      << body.str() << "</svg>\n";
  return out.str();
}
