// The text behind a failing TnStatus. host->fail stores it per thread; whoever called the plugin takes it from here.
#pragma once

#include <string>

#include <tenon/plugin/abi.h>
#include <tenon/status.hpp>

namespace tenon {

/// Stores the reason of a failure for the calling thread; what TnHost.fail does. `where` and `message` may be NULL.
void record_failure(TnStatus code, const char* where, const char* message);

/// The Status of a plugin call that answered `code`, with the text that the plugin recorded on this thread, after
/// `call + ": "`. A failing code without text is reported as the plugin's misbehaviour. Clears the record.
/// TN_OK gives success.
Status take_failure(TnStatus code, const std::string& call);

/// Forgets what an earlier call left behind; called before each call into a plugin.
void clear_failure();

}  // namespace tenon
