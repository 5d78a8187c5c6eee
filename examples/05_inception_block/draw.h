// Draws build reports as pictures.
#ifndef INCEPTION_BLOCK_DRAW_H
#define INCEPTION_BLOCK_DRAW_H

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

/// SVG text: each report under its title, left to right. A box is a launch; a dashed box is a view, which launches
/// nothing; a line is a tensor.
std::string draw(const std::vector<std::pair<std::string, nlohmann::json>>& reports);

#endif  // INCEPTION_BLOCK_DRAW_H
