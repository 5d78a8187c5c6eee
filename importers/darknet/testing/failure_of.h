// failure_of: what a reader throws, as text.
#ifndef TENON_IMPORTERS_DARKNET_TESTING_FAILURE_OF_H_
#define TENON_IMPORTERS_DARKNET_TESTING_FAILURE_OF_H_

#include <string>
#include <tenon/sdk/error.hpp>

namespace tenon::darknet {

/// The message of the Invalid that `body` throws; "no failure" if it throws none.
template <class Body>
std::string failure_of(Body&& body) {
  try {
    body();
  } catch (const Invalid& failure) {
    return failure.what();
  }
  return "no failure";
}

}  // namespace tenon::darknet

#endif  // TENON_IMPORTERS_DARKNET_TESTING_FAILURE_OF_H_
