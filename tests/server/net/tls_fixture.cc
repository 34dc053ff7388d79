// Certificates and clients for the tests of TLS.
#include "tests/server/net/tls_fixture.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

constexpr long kHour = 3600;

X509* Certificate(EVP_PKEY* key, const std::string& name, int serial, int hours, X509* issuer,
                  EVP_PKEY* signer) {
  X509* const made = X509_new();
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), serial);
  // An expired one had begun before it ended.
  X509_gmtime_adj(X509_getm_notBefore(made), -1000 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(made), hours * kHour);
  X509_NAME* const subject = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made, issuer == nullptr ? subject : X509_get_subject_name(issuer));
  X509_set_pubkey(made, key);
  if (issuer == nullptr) {
    X509_EXTENSION* const authority =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    X509_add_ext(made, authority, -1);
    X509_EXTENSION_free(authority);
  }
  X509_sign(made, signer, EVP_sha256());
  return made;
}

void WriteCertificate(const std::string& path, X509* certificate) {
  FILE* const file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
}

}  // namespace

std::string Identity::Settings() const {
  return absl::StrCat("tls-cert-file ", certificate, "\ntls-key-file ", key, "\n");
}

Authority::Authority() {
  std::string pattern = absl::StrCat(::testing::TempDir(), "idemd-tls-XXXXXX");
  directory_ = mkdtemp(pattern.data());
  key_ = EVP_EC_gen("P-256");
  self_ = Certificate(key_, "authority", 1, 24, nullptr, key_);
  certificate_ = directory_ + "/authority.pem";
  WriteCertificate(certificate_, self_);
}

Authority::~Authority() {
  X509_free(self_);
  EVP_PKEY_free(key_);
  std::filesystem::remove_all(directory_);
}

Identity Authority::Issue(const std::string& name, int hours, const std::string& password) {
  const std::string base = absl::StrCat(directory_, "/", name, "-", ++issued_);
  Identity identity{base + ".pem", base + ".key"};
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = Certificate(key, name, 100 + issued_, hours, self_, key_);
  WriteCertificate(identity.certificate, certificate);
  FILE* const file = std::fopen(identity.key.c_str(), "w");
  PEM_write_PrivateKey(
      file, key, password.empty() ? nullptr : EVP_aes_128_cbc(),
      password.empty() ? nullptr : reinterpret_cast<const unsigned char*>(password.data()),
      static_cast<int>(password.size()), nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

std::string Authority::File(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(directory_, "/", name);
  std::ofstream(path) << text;
  return path;
}

ClientContext MakeClientContext(const Identity* identity) {
  const ClientContext context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (identity != nullptr) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), identity->certificate.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), identity->key.c_str(), SSL_FILETYPE_PEM),
              1);
  }
  return context;
}

MemoryClient::MemoryClient(const ClientContext& context) : ssl_(SSL_new(context.get())) {
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_);
}

void MemoryClient::Write(absl::string_view plain) {
  EXPECT_EQ(SSL_write(ssl_, plain.data(), static_cast<int>(plain.size())),
            static_cast<int>(plain.size()));
}

std::string MemoryClient::Sent() {
  char* bytes = nullptr;
  const long n = BIO_get_mem_data(SSL_get_wbio(ssl_), &bytes);
  std::string sent(bytes, static_cast<size_t>(n));
  (void)BIO_reset(SSL_get_wbio(ssl_));
  return sent;
}

void MemoryClient::Receive(absl::string_view sealed) {
  if (!sealed.empty())
    BIO_write(SSL_get_rbio(ssl_), sealed.data(), static_cast<int>(sealed.size()));
}

std::string MemoryClient::Read() {
  std::string text;
  char bytes[16 * 1024];
  int n = 0;
  while ((n = SSL_read(ssl_, bytes, sizeof(bytes))) > 0) text.append(bytes, static_cast<size_t>(n));
  ERR_clear_error();
  return text;
}

TlsClient::TlsClient(int port, const ClientContext& context)
    : socket_(Client::Tcp(port)), ssl_(SSL_new(context.get())) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that the server has closed
  SSL_set_fd(ssl_, socket_.fd());
  ERR_clear_error();
  shaken_ = socket_.connected() && Uninterrupted([this] { return SSL_connect(ssl_); }) == 1;
}

TlsClient::~TlsClient() { SSL_free(ssl_); }

void TlsClient::Send(absl::string_view bytes) {
  if (!bytes.empty()) Uninterrupted([&] { return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())); });
}

std::string TlsClient::Read(size_t n) {
  std::string text(n, '\0');
  size_t have = 0;
  while (have < n) {
    const int got = Uninterrupted([&] { return SSL_read(ssl_, text.data() + have, static_cast<int>(n - have)); });
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

std::string TlsClient::Line() {
  std::string line;
  char byte = 0;
  while ((line.empty() || line.back() != '\n') && Uninterrupted([&] { return SSL_read(ssl_, &byte, 1); }) == 1)
    line.push_back(byte);
  return line;
}

long TlsClient::ServerSerial() const {
  X509* const certificate = SSL_get1_peer_certificate(ssl_);
  if (certificate == nullptr) return 0;
  const long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
  X509_free(certificate);
  return serial;
}

}  // namespace idemd::server
