// OpenSSL between two pieces of memory: its "socket" reads from what is at hand, and writes to the
// end of a string.
#include "server/net/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace idemd::server {

// Made once, and for ever.
BIO_METHOD* TlsStream::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "idemd");
    if (made == nullptr) return made;
    BIO_meth_set_read_ex(made, &TlsStream::Read);
    BIO_meth_set_write_ex(made, &TlsStream::Write);
    BIO_meth_set_ctrl(made, &TlsStream::Control);
    return made;
  }();
  return method;
}

int TlsStream::Read(BIO* bio, char* to, size_t size, size_t* read) {
  auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *read = std::min(size, stream.input_.size());
  if (*read == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(to, stream.input_.data(), *read);
  stream.input_.remove_prefix(*read);
  return 1;
}

int TlsStream::Write(BIO* bio, const char* bytes, size_t size, size_t* written) {
  auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (stream.output_ == nullptr) return 0;
  try {  // nothing may be thrown through OpenSSL
    stream.output_->append(bytes, size);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  *written = size;
  return 1;
}

long TlsStream::Control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

std::unique_ptr<TlsStream> TlsStream::Accept(const TlsContext& context) {
  std::unique_ptr<TlsStream> stream(new TlsStream);
  ERR_clear_error();
  BIO_METHOD* const method = Method();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  stream->ssl_ = bio == nullptr ? nullptr : SSL_new(context.get());
  if (stream->ssl_ == nullptr) {
    BIO_free(bio);
    return nullptr;
  }
  BIO_set_data(bio, stream.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(stream->ssl_, bio, bio);
  SSL_set_accept_state(stream->ssl_);
  return stream;
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

TlsStream::Progress TlsStream::Fail() {
  failed_ = true;
  problem_ = TakeTlsProblem();
  input_ = {};
  output_ = nullptr;
  return Progress::kFailed;
}

TlsStream::Progress TlsStream::Handshake() {
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) {
    established_ = true;
    return Progress::kOpen;
  }
  return SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ ? Progress::kOpen : Progress::kFailed;
}

TlsStream::Progress TlsStream::Take(absl::string_view sealed, size_t wanted, ReadBuffer& plain,
                                    std::string& to_send) {
  if (failed_) return Progress::kFailed;
  ERR_clear_error();
  input_ = sealed;
  output_ = &to_send;
  if (!established_ && Handshake() == Progress::kFailed) return Fail();
  Progress progress = Progress::kOpen;
  for (bool first = true; established_; first = false) {
    if ((first || plain.space_bytes() == 0) && !plain.MakeRoom(wanted)) {
      ERR_raise(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE);
      return Fail();
    }
    size_t n = 0;
    const int read = SSL_read_ex(ssl_, plain.space(), plain.space_bytes(), &n);
    if (read == 1) {
      plain.Commit(n);
      continue;
    }
    const int why = SSL_get_error(ssl_, read);
    if (why == SSL_ERROR_WANT_READ) break;
    if (why != SSL_ERROR_ZERO_RETURN) return Fail();
    progress = Progress::kEnd;
    break;
  }
  input_ = {};
  output_ = nullptr;
  return progress;
}

bool TlsStream::Seal(absl::string_view plain, std::string& to_send) {
  if (!established_ || failed_ || said_end_) return false;
  if (plain.empty()) return true;
  ERR_clear_error();
  output_ = &to_send;
  size_t n = 0;
  const bool sealed = SSL_write_ex(ssl_, plain.data(), plain.size(), &n) == 1 && n == plain.size();
  output_ = nullptr;
  if (!sealed) Fail();
  return sealed;
}

void TlsStream::SealEnd(std::string& to_send) {
  if (!established_ || failed_ || said_end_) return;
  ERR_clear_error();
  said_end_ = true;
  output_ = &to_send;
  SSL_shutdown(ssl_);
  output_ = nullptr;
  ERR_clear_error();
}

}  // namespace idemd::server
