// A server that speaks TLS: who is let in, beside plain clients; what a change of settings does;
// what a stranger costs.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/net/tls_fixture.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;

class TlsTest : public NetTest {
 protected:
  // A TLS port beside the plain one, that asks no certificate of clients unless `options` say so.
  void StartTls(const std::string& options = "tls-auth-clients no\n") {
    tls_port_ = FreePort();
    Start(absl::StrCat("tls-port ", tls_port_, "\n", server_identity_.Settings(), options));
  }
  absl::Status Set(const std::vector<std::pair<absl::string_view, absl::string_view>>& pairs) {
    return settings_.Set(pairs, {});
  }
  std::string Authorities() const {
    return absl::StrCat("tls-ca-cert-file ", authority_.certificate(), "\n");
  }

  Authority authority_;
  Identity server_identity_ = authority_.Issue("server");
  int tls_port_ = 0;
};

TEST_F(TlsTest, BothPortsServe) {
  StartTls();
  TlsClient sealed(tls_port_);
  ASSERT_TRUE(sealed.Connected());
  Client plain = Connect();
  plain.Send("PING\r\n");
  EXPECT_EQ(plain.Line(), "+PONG\r\n");
  EXPECT_TRUE(sealed.Connected());
  EXPECT_EQ(stats_.Totals().connections, 2u);
}

TEST_F(TlsTest, TheTlsPortAloneServesToo) {
  StartTls("port 0\ntls-auth-clients no\n");
  EXPECT_TRUE(TlsClient(tls_port_).Connected());
  EXPECT_FALSE(Connect().connected());
}

TEST_F(TlsTest, LongRequestsAndRepliesComeWhole) {
  StartTls();
  TlsClient client(tls_port_);
  const std::string word(5'000'000, 'w');
  client.Send(Request({"ECHO", word}));
  EXPECT_EQ(client.Line(), "$5000000\r\n");
  EXPECT_TRUE(client.Read(word.size()) == word);
  EXPECT_EQ(client.Read(2), "\r\n");
}

TEST_F(TlsTest, APipelineIsAnsweredInOrder) {
  StartTls();
  TlsClient client(tls_port_);
  std::string requests;
  std::string replies;
  for (int i = 0; i < 5000; ++i) {
    const std::string number = absl::StrCat(i);
    requests += Request({"ECHO", number});
    absl::StrAppend(&replies, "$", number.size(), "\r\n", number, "\r\n");
  }
  client.Send(requests);
  EXPECT_TRUE(client.Read(replies.size()) == replies);
}

TEST_F(TlsTest, ACallerThatWaitsIsAnsweredOverTls) {
  StartTls();
  TlsClient client(tls_port_);
  client.Send("BLOCK\r\n");
  ASSERT_TRUE(Eventually([] { return blocked() == 1; }));
  Unblock(0, "+late\r\n");
  EXPECT_EQ(client.Line(), "+late\r\n");
  EXPECT_TRUE(client.Connected());
}

TEST_F(TlsTest, WhatOthersHaveForAConnectionLeavesSealed) {
  StartTls();
  TlsClient monitor(tls_port_);
  monitor.Send("MONITOR\r\n");
  ASSERT_EQ(monitor.Line(), "+OK\r\n");
  TlsClient other(tls_port_);
  ASSERT_TRUE(other.Connected());
  EXPECT_THAT(monitor.Line(), HasSubstr("\"PING\""));
}

TEST_F(TlsTest, AClientThatIsClosedIsToldGoodbye) {
  StartTls();
  TlsClient client(tls_port_);
  client.Send("CLOSE\r\nPING\r\n");
  EXPECT_EQ(client.Line(), "+OK\r\n");
  EXPECT_EQ(client.Line(), "");
  EXPECT_NE(SSL_get_shutdown(client.ssl()) & SSL_RECEIVED_SHUTDOWN, 0);
}

TEST_F(TlsTest, ClientsNeedACertificateOfAnAuthority) {
  Authority strangers;
  const Identity good = authority_.Issue("client");
  const Identity expired = authority_.Issue("late", -1);
  const Identity stranger = strangers.Issue("stranger");
  StartTls(Authorities());
  EXPECT_TRUE(TlsClient(tls_port_, MakeClientContext(&good)).Connected());
  EXPECT_FALSE(TlsClient(tls_port_).Connected());
  EXPECT_FALSE(TlsClient(tls_port_, MakeClientContext(&expired)).Connected());
  EXPECT_FALSE(TlsClient(tls_port_, MakeClientContext(&stranger)).Connected());
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
  EXPECT_EQ(stats_.Totals().connections, 1u);
}

TEST_F(TlsTest, AnOptionalCertificateMustBeGoodIfThereIsOne) {
  const Identity good = authority_.Issue("client");
  const Identity expired = authority_.Issue("late", -1);
  StartTls(absl::StrCat(Authorities(), "tls-auth-clients optional\n"));
  EXPECT_TRUE(TlsClient(tls_port_, MakeClientContext(&good)).Connected());
  EXPECT_TRUE(TlsClient(tls_port_).Connected());
  EXPECT_FALSE(TlsClient(tls_port_, MakeClientContext(&expired)).Connected());
}

TEST_F(TlsTest, ANewCertificateCountsForNewConnections) {
  StartTls();
  TlsClient old(tls_port_);
  const Identity next = authority_.Issue("next");
  ASSERT_TRUE(Set({{"tls-cert-file", next.certificate}, {"tls-key-file", next.key}}).ok());
  TlsClient fresh(tls_port_);
  EXPECT_TRUE(fresh.Connected());
  EXPECT_TRUE(old.Connected());
  EXPECT_NE(old.ServerSerial(), fresh.ServerSerial());
}

TEST_F(TlsTest, ACertificateThatWasReplacedInItsFileIsReadWhenSetAgain) {
  StartTls();
  const long before = TlsClient(tls_port_).ServerSerial();
  const Identity next = authority_.Issue("next");
  ASSERT_EQ(std::rename(next.certificate.c_str(), server_identity_.certificate.c_str()), 0);
  ASSERT_EQ(std::rename(next.key.c_str(), server_identity_.key.c_str()), 0);
  EXPECT_EQ(TlsClient(tls_port_).ServerSerial(), before);
  ASSERT_TRUE(Set({{"tls-cert-file", server_identity_.certificate}}).ok());
  EXPECT_NE(TlsClient(tls_port_).ServerSerial(), before);
}

TEST_F(TlsTest, AWrongFileChangesNothing) {
  StartTls();
  const long before = TlsClient(tls_port_).ServerSerial();
  const std::string junk = authority_.File("junk.pem", "this is no certificate");
  const std::string other_key = authority_.Issue("other").key;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"tls-cert-file", "/nonexistent"},
                                                        {"tls-cert-file", junk},
                                                        {"tls-cert-file", ""},
                                                        {"tls-key-file", other_key},
                                                        {"tls-ca-cert-file", junk},
                                                        {"tls-dh-params-file", junk},
                                                        {"tls-protocols", "SSLv2"},
                                                        {"tls-ciphers", "NONSENSE"},
                                                        {"tls-ciphersuites", "NONSENSE"},
                                                        {"tls-auth-clients", "yes"}}) {
    SCOPED_TRACE(name + " " + value);
    const std::string was = settings_.Text(name);
    EXPECT_EQ(Set({{name, value}}).message(),
              absl::StrCat("CONFIG SET failed (possibly related to argument '", name,
                           "') - Unable to update TLS configuration. Check server logs."));
    EXPECT_EQ(settings_.Text(name), was);
    TlsClient client(tls_port_);
    EXPECT_TRUE(client.Connected());
    EXPECT_EQ(client.ServerSerial(), before);
  }
}

TEST_F(TlsTest, AKeyWithAPasswordNeedsIt) {
  server_identity_ = authority_.Issue("server", 24, "sesame");
  tls_port_ = FreePort();
  ASSERT_TRUE(settings_.LoadText(server_identity_.Settings() + "tls-auth-clients no\n").ok());
  EXPECT_FALSE(MakeTlsContext(settings_).ok());
  ASSERT_TRUE(settings_.LoadText("tls-key-file-pass wrong\n").ok());
  EXPECT_FALSE(MakeTlsContext(settings_).ok());
  StartTls("tls-key-file-pass sesame\ntls-auth-clients no\n");
  EXPECT_TRUE(TlsClient(tls_port_).Connected());
}

TEST_F(TlsTest, OnlyTheProtocolsThatAreSetAreSpoken) {
  StartTls("tls-protocols TLSv1.2\ntls-auth-clients no\n");
  const ClientContext newer = MakeClientContext();
  SSL_CTX_set_min_proto_version(newer.get(), TLS1_3_VERSION);
  EXPECT_FALSE(TlsClient(tls_port_, newer).shaken());
  TlsClient client(tls_port_);
  EXPECT_TRUE(client.Connected());
  EXPECT_STREQ(SSL_get_version(client.ssl()), "TLSv1.2");
}

TEST_F(TlsTest, WhoWasLetInUnderOldSettingsTakesUpNoSession) {
  StartTls(absl::StrCat(Authorities(), "tls-protocols TLSv1.2\ntls-auth-clients no\n"));
  const ClientContext context = MakeClientContext();
  TlsClient first(tls_port_, context);
  ASSERT_TRUE(first.Connected());
  SSL_SESSION* const session = SSL_get1_session(first.ssl());
  const auto again = [&] {
    const ClientContext with_session = MakeClientContext();
    Client socket = Client::Tcp(tls_port_);
    SSL* const ssl = SSL_new(with_session.get());
    SSL_set_fd(ssl, socket.fd());
    SSL_set_session(ssl, session);
    const bool shaken = Uninterrupted([ssl] { return SSL_connect(ssl); }) == 1;
    const bool resumed = shaken && SSL_session_reused(ssl) == 1;
    SSL_free(ssl);
    return std::pair(shaken, resumed);
  };
  EXPECT_EQ(again(), std::pair(true, true));
  ASSERT_TRUE(Set({{"tls-auth-clients", "yes"}}).ok());
  EXPECT_EQ(again(), std::pair(false, false));
  SSL_SESSION_free(session);
}

TEST_F(TlsTest, PlainBytesOnTheTlsPortEndTheConnection) {
  StartTls();
  for (const absl::string_view bytes :
       {"PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n\r\n"}) {
    Client client = Client::Tcp(tls_port_);
    client.Send(bytes);
    bool closed = false;
    EXPECT_THAT(client.ReadToEnd(&closed), ::testing::Not(HasSubstr("PONG")));
    EXPECT_TRUE(closed);
  }
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
  EXPECT_EQ(stats_.Totals().connections, 0u);
}

TEST_F(TlsTest, ATlsHelloOnThePlainPortEndsTheConnection) {
  StartTls();
  EXPECT_FALSE(TlsClient(port_).shaken());
  Client client = Connect();
  client.Send("\x16");
  client.Send("\x03\x01");
  EXPECT_TRUE(client.AtEnd());
  EXPECT_EQ(executed(), 0);
}

TEST_F(TlsTest, AnUnfinishedHandshakeCountsAsAClientUntilItsTimeIsUp) {
  StartTls("maxclients 2\ntls-handshake-timeout 1\ntls-auth-clients no\n");
  Client silent = Client::Tcp(tls_port_);
  Client half = Client::Tcp(tls_port_);
  half.Send("\x16\x03\x01");
  ASSERT_TRUE(Eventually([&] { return clients_.count() == 2; }));
  Client third = Connect();
  EXPECT_EQ(third.ReadToEnd(), "-ERR max number of clients reached\r\n");
  EXPECT_FALSE(TlsClient(tls_port_).shaken());
  EXPECT_TRUE(silent.AtEnd());
  EXPECT_TRUE(half.AtEnd());
  EXPECT_TRUE(TlsClient(tls_port_).Connected());
}

TEST_F(TlsTest, AHandshakeThatIsHalfClosedEndsAtOnce) {
  StartTls("tls-handshake-timeout 3600\ntls-auth-clients no\n");
  Client half = Client::Tcp(tls_port_);
  half.Send("\x16\x03\x01\x02");
  half.ShutWrite();
  EXPECT_TRUE(half.AtEnd());
  Client gone = Client::Tcp(tls_port_);
  gone.Send("\x16\x03");
  gone.Reset();
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
}

TEST_F(TlsTest, ThePortCanBeOpenedAndClosedWhileRunning) {
  Start(server_identity_.Settings());
  const int port = FreePort();
  const std::string text = absl::StrCat(port);
  EXPECT_FALSE(Set({{"tls-port", text}})
                   .ok());  // clients' certificates are asked for, and there is no authority
  EXPECT_EQ(settings_.Text("tls-port"), "0");
  ASSERT_TRUE(Set({{"tls-port", text}, {"tls-auth-clients", "no"}}).ok());
  TlsClient client(port);
  EXPECT_TRUE(client.Connected());
  ASSERT_TRUE(Set({{"tls-port", "0"}}).ok());
  EXPECT_FALSE(TlsClient(port).shaken());
  EXPECT_TRUE(client.Connected());
}

TEST_F(TlsTest, WithoutACertificateTheServerDoesNotStart) {
  ASSERT_TRUE(settings_.LoadText("tls-auth-clients no\n").ok());
  EXPECT_THAT(MakeTlsContext(settings_).status().message(),
              HasSubstr("No tls-cert-file configured!"));
  ASSERT_TRUE(
      settings_.LoadText(absl::StrCat("tls-cert-file ", server_identity_.certificate, "\n")).ok());
  EXPECT_THAT(MakeTlsContext(settings_).status().message(),
              HasSubstr("No tls-key-file configured!"));
}

}  // namespace
}  // namespace idemd::server
