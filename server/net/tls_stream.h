// One connection's TLS: what the socket gave becomes what the client said, and replies become what
// the socket is to send. Knows no socket, and never waits: bytes go in and come out as they are
// there.
//
// Everything that is sealed comes out in the order in which it is to be sent.
// Threads   one, its connection's.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/net/read_buffer.h"
#include "server/net/tls_context.h"

namespace idemd::server {

class TlsStream {
 public:
  enum class Progress {
    kOpen,    // all that came was used; more may come
    kEnd,     // the client has said that nothing more will come; what it had said before counts
    kFailed,  // no TLS, not what the settings ask for, or changed on its way: problem() says
  };

  // Null when there is no memory for it.
  static std::unique_ptr<TlsStream> Accept(const TlsContext& context);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // The handshake is over.
  bool established() const { return established_; }
  // Why it failed.
  const std::string& problem() const { return problem_; }

  // Uses all of `sealed`: goes on with the handshake, then appends to `plain` what the client said.
  // Appends to `to_send` what TLS itself has to say, a reason for failing included. `wanted` as for
  // ReadBuffer::MakeRoom().
  [[nodiscard]] Progress Take(absl::string_view sealed, size_t wanted, ReadBuffer& plain,
                              std::string& to_send);
  // Appends to `to_send`. False: there is no memory, or the connection is not one to be written to.
  [[nodiscard]] bool Seal(absl::string_view plain, std::string& to_send);
  // Tells the client that nothing more will come, once.
  void SealEnd(std::string& to_send);

 private:
  TlsStream() = default;
  Progress Fail();
  Progress Handshake();
  static BIO_METHOD* Method();
  static int Read(BIO* bio, char* to, size_t size, size_t* read);
  static int Write(BIO* bio, const char* bytes, size_t size, size_t* written);
  static long Control(BIO* bio, int what, long number, void* pointer);

  SSL* ssl_ = nullptr;
  absl::string_view input_;        // what OpenSSL has not read yet; empty between calls
  std::string* output_ = nullptr;  // where it writes; null between calls
  bool established_ = false;
  bool failed_ = false;
  bool said_end_ = false;
  std::string problem_;
};

}  // namespace idemd::server
