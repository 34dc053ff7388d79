// Certificates made for a test, and the client's side of TLS: in memory, or over a socket.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/server/net/net_fixture.h"

namespace idemd::server {

// A certificate and its key, as files.
struct Identity {
  std::string certificate;
  std::string key;

  // Lines of a settings file.
  std::string Settings() const;
};

// Signs certificates. Its files lie in a directory of its own, which goes with it.
class Authority {
 public:
  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // Valid from an hour ago until `hours` from now. The key is encrypted where there is a password.
  Identity Issue(const std::string& name, int hours = 24, const std::string& password = "");
  // A file of the directory with this text.
  std::string File(const std::string& name, const std::string& text);
  // Its own certificate.
  const std::string& certificate() const { return certificate_; }

 private:
  std::string directory_;
  std::string certificate_;
  EVP_PKEY* key_ = nullptr;
  X509* self_ = nullptr;
  int issued_ = 0;
};

using ClientContext = std::shared_ptr<SSL_CTX>;
// Trusts everybody, and shows `identity` where there is one.
ClientContext MakeClientContext(const Identity* identity = nullptr);

// The client's side, in memory.
class MemoryClient {
 public:
  explicit MemoryClient(const ClientContext& context = MakeClientContext());
  ~MemoryClient() { SSL_free(ssl_); }
  MemoryClient(const MemoryClient&) = delete;
  MemoryClient& operator=(const MemoryClient&) = delete;

  SSL* ssl() { return ssl_; }
  bool Handshake() { return SSL_do_handshake(ssl_) == 1; }
  void Write(absl::string_view plain);
  // What it wants to have sent.
  std::string Sent();
  // What came for it.
  void Receive(absl::string_view sealed);
  // All that was said to it and not read yet.
  std::string Read();
  bool AtEnd() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }

 private:
  SSL* ssl_;
};

// The client's side over a socket of a test's server. Everything gives up after some seconds.
class TlsClient {
 public:
  explicit TlsClient(int port, const ClientContext& context = MakeClientContext());
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Whether the server let it in; with TLS 1.3, that shows in the first answer.
  bool Connected() { return shaken_ && Ask("PING\r\n") == "+PONG\r\n"; }
  bool shaken() const { return shaken_; }
  bool resumed() const { return SSL_session_reused(ssl_) == 1; }
  SSL* ssl() { return ssl_; }
  void Send(absl::string_view bytes);
  std::string Read(size_t n);
  std::string Line();
  std::string Ask(absl::string_view bytes) {
    Send(bytes);
    return Line();
  }
  // The serial number of the server's certificate.
  long ServerSerial() const;

 private:
  Client socket_;
  SSL* ssl_;
  bool shaken_ = false;
};

}  // namespace idemd::server
