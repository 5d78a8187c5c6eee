// The JSON texts that travel with an imported network.
//
// Thread rule: free functions; call from any thread.
#ifndef TENON_IMPORTERS_DARKNET_METADATA_H_
#define TENON_IMPORTERS_DARKNET_METADATA_H_

#include <map>
#include <string>
#include <vector>

#include "importers/darknet/layers.h"

namespace tenon::darknet {

struct HeadOutput {
  std::string output;  // name of the value
  Head head;
};

// "detection": {"heads":[{"output":"layer121","kind":"yolo",...}],"net":{"width":320,"height":320,"channels":3}}
std::string detection_json(const std::vector<HeadOutput>& heads, const Shape& net);

// "classification": {"output":"layer21","net":{...}}
std::string classification_json(const std::string& output, const Shape& net);

// "darknet.aliases": {"layer5":"layer4"}
std::string aliases_json(const std::map<std::string, std::string>& aliases);

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_METADATA_H_
