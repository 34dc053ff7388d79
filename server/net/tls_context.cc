// From settings to a context of OpenSSL.
#include "server/net/tls_context.h"

#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "protocol/number.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kSessionContext = "idemd";

absl::Status Wrong(absl::string_view what) { return absl::FailedPreconditionError(what); }
absl::Status WrongFile(absl::string_view what, absl::string_view path) {
  return Wrong(absl::StrCat("Failed to load ", what, ": ", path, ": ", TakeTlsProblem()));
}

// Without this, OpenSSL asks for the password at the terminal.
int GivePassword(char* to, int size, int, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || size < 0 || text.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(to, text.data(), text.size());
  return static_cast<int>(text.size());
}

absl::Status LoadKeyPair(const Settings& settings, SSL_CTX* context) {
  const std::string certificate = settings.Text("tls-cert-file");
  const std::string key = settings.Text("tls-key-file");
  if (certificate.empty()) return Wrong("No tls-cert-file configured!");
  if (key.empty()) return Wrong("No tls-key-file configured!");
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) <= 0)
    return WrongFile("certificate", certificate);
  std::string password = settings.Text("tls-key-file-pass");
  SSL_CTX_set_default_passwd_cb(context, &GivePassword);
  SSL_CTX_set_default_passwd_cb_userdata(context, &password);
  const bool loaded = SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) > 0;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  OPENSSL_cleanse(password.data(), password.size());
  return loaded ? absl::OkStatus() : WrongFile("private key", key);
}

absl::Status LoadAuthorities(const Settings& settings, SSL_CTX* context) {
  const std::string file = settings.Text("tls-ca-cert-file");
  const std::string directory = settings.Text("tls-ca-cert-dir");
  const std::string clients = settings.Text("tls-auth-clients");
  if (file.empty() && directory.empty()) {
    if (clients == "no") return absl::OkStatus();
    return Wrong(
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is "
        "enabled!");
  }
  if (SSL_CTX_load_verify_locations(context, file.empty() ? nullptr : file.c_str(),
                                    directory.empty() ? nullptr : directory.c_str()) <= 0) {
    return Wrong(
        absl::StrCat("Failed to configure CA certificate(s) file/directory: ", TakeTlsProblem()));
  }
  int mode = SSL_VERIFY_NONE;
  if (clients != "no") mode = SSL_VERIFY_PEER;
  if (clients == "yes") mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context, mode, nullptr);
  return absl::OkStatus();
}

// Switched off one by one, as a list with a gap is one that may be asked for.
absl::Status ChooseProtocols(const Settings& settings, SSL_CTX* context) {
  constexpr std::pair<absl::string_view, uint64_t> kProtocols[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                                                                   {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                                                                   {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                                                                   {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
  uint64_t off = SSL_OP_NO_SSLv3;
  for (const auto& [name, bit] : kProtocols) off |= bit;
  std::string text = settings.Text("tls-protocols");
  if (text.empty()) text = "TLSv1.2 TLSv1.3";
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    bool known = false;
    for (const auto& [name, bit] : kProtocols) {
      if (!absl::EqualsIgnoreCase(word, name)) continue;
      off &= ~bit;
      known = true;
    }
    if (!known) {
      return Wrong(
          "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and "
          "'TLSv1.3'.");
    }
  }
  SSL_CTX_set_options(context, off);
  return absl::OkStatus();
}

absl::Status ChooseCiphers(const Settings& settings, SSL_CTX* context) {
  if (const std::string text = settings.Text("tls-ciphers");
      !text.empty() && SSL_CTX_set_cipher_list(context, text.c_str()) != 1)
    return Wrong(absl::StrCat("Failed to configure ciphers: ", text, ": ", TakeTlsProblem()));
  if (const std::string text = settings.Text("tls-ciphersuites");
      !text.empty() && SSL_CTX_set_ciphersuites(context, text.c_str()) != 1)
    return Wrong(absl::StrCat("Failed to configure ciphersuites: ", text, ": ", TakeTlsProblem()));
  if (settings.Text("tls-prefer-server-ciphers") == "yes")
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  return absl::OkStatus();
}

absl::Status ChooseDiffieHellman(const Settings& settings, SSL_CTX* context) {
  const std::string path = settings.Text("tls-dh-params-file");
  if (path.empty()) {
    SSL_CTX_set_dh_auto(context, 1);
    return absl::OkStatus();
  }
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(path.c_str(), "r"), &BIO_free);
  EVP_PKEY* const parameters =
      file == nullptr ? nullptr : PEM_read_bio_Parameters(file.get(), nullptr);
  if (parameters == nullptr) return WrongFile("DH params file", path);
  if (SSL_CTX_set0_tmp_dh_pkey(context, parameters) == 1)
    return absl::OkStatus();  // it owns them now
  EVP_PKEY_free(parameters);
  return WrongFile("DH params file", path);
}

void ConfigureSessions(const Settings& settings, SSL_CTX* context) {
  // Of a client that showed a certificate, OpenSSL takes up a session only under a name.
  SSL_CTX_set_session_id_context(context,
                                 reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 static_cast<unsigned>(kSessionContext.size()));
  if (settings.Text("tls-session-caching") == "no") {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return;
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
  SSL_CTX_sess_set_cache_size(context, TlsNumber(settings, "tls-session-cache-size"));
  SSL_CTX_set_timeout(context, TlsNumber(settings, "tls-session-cache-timeout"));
}

}  // namespace

int64_t TlsNumber(const Settings& settings, absl::string_view name) {
  int64_t value = 0;
  return protocol::ParseInt64(settings.Text(name), &value) ? value : 0;
}

std::string TakeTlsProblem() {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0)
    ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return text;
}

absl::StatusOr<TlsContext> MakeTlsContext(const Settings& settings) {
  ERR_clear_error();
  const TlsContext context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (context == nullptr)
    return Wrong(absl::StrCat("Failed to make a TLS context: ", TakeTlsProblem()));
  // A new handshake on an old connection is work for the asking, and compression tells of secrets
  // by its length.
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_SINGLE_DH_USE);
  // Buffers of a record live only while one is under way: an idle connection keeps none.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  for (const auto apply :
       {&LoadKeyPair, &LoadAuthorities, &ChooseProtocols, &ChooseCiphers, &ChooseDiffieHellman}) {
    if (absl::Status status = apply(settings, context.get()); !status.ok()) return status;
  }
  ConfigureSessions(settings, context.get());
  return context;
}

}  // namespace idemd::server
