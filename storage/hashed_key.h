// A key with its hash: see storage/key/hashed_key.h.
#pragma once

#include "storage/key/hashed_key.h"  // IWYU pragma: export
