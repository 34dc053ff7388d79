// The options of TLS, with what each does. All but the port and the handshake's time go into the
// context, which is made anew when one of them is set.
#include <climits>

#include "server/admin/option.h"

namespace idemd::server {
namespace {

using T = OptionType;

constexpr int64_t kIntMax = INT_MAX;

// A file, or something else outside that may have changed under its name.
constexpr OptionSpec Text(const char* name, const char* doc, uint8_t flags = kReload) {
  return {.name = name, .type = T::kText, .flags = flags, .group = "TLS", .doc = doc};
}

constexpr OptionSpec kOptions[] = {
    {.name = "tls-port",
     .type = T::kInteger,
     .initial = "0",
     .max = 65535,
     .group = "TLS",
     .doc = "TCP port that speaks TLS, beside `port` or instead of it; 0 for none."},
    Text("tls-cert-file",
         "The server's certificate in PEM, followed by those that lead to the root. Setting a file "
         "again reads it again; connections that exist keep what they have."),
    Text("tls-key-file", "The certificate's private key in PEM."),
    Text("tls-key-file-pass", "The password of the private key; empty for none.",
         kReload | kSecret),
    Text("tls-ca-cert-file", "The authorities that sign clients' certificates, in PEM."),
    Text("tls-ca-cert-dir",
         "A directory with such authorities, each under its hash (`openssl rehash`)."),
    {.name = "tls-auth-clients",
     .type = T::kEnum,
     .initial = "yes",
     .words = "no yes optional",
     .group = "TLS",
     .doc = "Whether clients need a certificate; with `optional` one that is shown must be good."},
    Text(
        "tls-protocols",
        "Any of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3, separated by blanks; empty for the last two."),
    Text("tls-ciphers",
         "Ciphers of TLSv1.2 and older, as OpenSSL names them; empty for its own choice."),
    Text("tls-ciphersuites", "Ciphers of TLSv1.3; empty for OpenSSL's choice."),
    {.name = "tls-prefer-server-ciphers",
     .type = T::kBool,
     .initial = "no",
     .group = "TLS",
     .doc = "Whether the server's order of ciphers counts, and not the client's."},
    {.name = "tls-session-caching",
     .type = T::kBool,
     .initial = "yes",
     .group = "TLS",
     .doc = "Whether sessions are kept, so that a client that comes again is spared the long "
            "handshake."},
    {.name = "tls-session-cache-size",
     .type = T::kInteger,
     .initial = "20480",
     .max = kIntMax,
     .group = "TLS",
     .doc = "How many sessions are kept; 0 for no limit."},
    {.name = "tls-session-cache-timeout",
     .type = T::kInteger,
     .initial = "300",
     .max = kIntMax,
     .unit = "seconds",
     .group = "TLS",
     .doc = "How long a session can be taken up again."},
    Text("tls-dh-params-file",
         "Diffie-Hellman parameters in PEM; empty for ones that fit the key."),
    {.name = "tls-handshake-timeout",
     .type = T::kInteger,
     .initial = "10",
     .min = 1,
     .max = 3600,
     .unit = "seconds",
     .group = "TLS",
     .doc = "Closes connections that have not finished their handshake after this long."},
};

}  // namespace

absl::Span<const OptionSpec> OptionsOfTls() { return kOptions; }

}  // namespace idemd::server
