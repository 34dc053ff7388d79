// One line into words, with Redis' rules for quotes and escapes.
//
// Words are separated by blanks. Inside "double quotes" \n \r \t \b \a and \xHH stand for bytes,
// and a backslash before anything else is dropped; inside 'single quotes' only \' is special. A
// closing quote must be followed by a blank or by the end of the line. Quotes may open in the
// middle of a word.
#pragma once

#include <deque>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace idemd::protocol {

// Calls `take` for each word: a view into `line`, or into `scratch` when quotes had to be taken
// off. False, after some words may have been taken: unbalanced quotes.
bool SplitLine(absl::string_view line, std::deque<std::string>& scratch,
               absl::FunctionRef<void(absl::string_view word)> take);

}  // namespace idemd::protocol
