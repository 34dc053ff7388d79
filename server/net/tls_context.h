// What all TLS connections that are accepted at one time share: certificate, key, authorities,
// ciphers, sessions.
//
// A change of settings makes a new one; connections keep the one that they began with, and with it
// the sessions that can be taken up again: what the old settings let in gets no short cut past new
// ones.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/admin/settings.h"

namespace idemd::server {

using TlsContext = std::shared_ptr<SSL_CTX>;

// From the settings and the files that they name. The error says which of them is wrong, with
// OpenSSL's reason. Threads   any; an SSL_CTX that nobody changes any more is shared freely.
absl::StatusOr<TlsContext> MakeTlsContext(const Settings& settings);

// The number of a setting of TLS, all of which are looked at seldom.
int64_t TlsNumber(const Settings& settings, absl::string_view name);

// OpenSSL's oldest complaint on this thread, as it is usually written: "error:0A00010B:SSL
// routines::wrong version number". Forgets all of them.
std::string TakeTlsProblem();

}  // namespace idemd::server
