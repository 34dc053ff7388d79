// Values to bytes: RESP2 and RESP3 replies, straight into the output buffer.
//
// One call writes one value; an array's or map's elements follow it, as many as it announced. In
// RESP2 maps are flat arrays, nulls "$-1" or "*-1", doubles bulk strings, booleans integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::protocol {

class Writer {
 public:
  Writer(std::string& out, int resp) : out_(&out), resp_(resp) {}
  int resp() const { return resp_; }
  void set_resp(int version) { resp_ = version; }
  std::string& buffer() { return *out_; }
  // Where the buffer ends at the latest: strings that would go beyond are left out, and cut() is true from then on. What is
  // there is no whole reply then.
  void set_limit(size_t end) {
    limit_ = end;
    cut_ = false;
  }
  bool cut() const { return cut_; }

  void Simple(absl::string_view text);  // +text
  void Ok() { out_->append("+OK\r\n", 5); }
  void Error(absl::string_view text);  // -text; the code word included; line ends become spaces
  void Integer(int64_t value);
  // Values that stand in `ready` as bytes, of at most kReadyBytesMax, and behind them some integers, of at most kIntegersMax: as one piece.
  static constexpr size_t kReadyBytesMax = 64;
  static constexpr size_t kIntegersMax = 4;
  void ReadyAndIntegers(absl::string_view ready, std::initializer_list<int64_t> integers);
  void Bulk(absl::string_view bytes);
  void Null();       // $-1 or _
  void NullArray();  // *-1 or _
  void Array(size_t elements);
  void Map(size_t pairs);        // RESP2: array of twice as many
  void Set(size_t elements);     // RESP2: array
  void Push(size_t elements);    // RESP2: array
  void Attribute(size_t pairs);  // RESP3 only
  void Double(double value);
  void Double(absl::string_view digits);  // as they stand
  void Boolean(bool value);                                                 // RESP2: 0 or 1
  void BigNumber(absl::string_view digits);                                 // RESP2: bulk
  void Verbatim(absl::string_view text, absl::string_view format = "txt");  // RESP2: bulk
  void BulkInteger(int64_t value);  // $n with decimal digits
  // For a length known only afterwards: remember the place; Insert...() puts the head there (moves
  // the tail).
  size_t Mark() const { return out_->size(); }
  void InsertArray(size_t mark, size_t elements);
  void InsertMap(size_t mark, size_t pairs);
  void InsertSet(size_t mark, size_t elements);

 private:
  void Head(char kind, uint64_t n);
  void InsertHead(size_t mark, char kind, uint64_t n);
  std::string* out_;
  size_t limit_ = static_cast<size_t>(-1);
  int resp_;
  bool cut_ = false;
};

}  // namespace idemd::protocol
