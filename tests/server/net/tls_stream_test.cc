// TLS in memory: whole, cut into pieces, changed on its way, and ended.
#include "server/net/tls_stream.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/net/tls_fixture.h"

namespace idemd::server {
namespace {

using Progress = TlsStream::Progress;

TlsContext ServerContext() {
  static const auto* const context = [] {
    Authority authority;
    Settings settings;
    EXPECT_TRUE(
        settings.LoadText(authority.Issue("server").Settings() + "tls-auth-clients no\n").ok());
    absl::StatusOr<TlsContext> made = MakeTlsContext(settings);
    EXPECT_TRUE(made.ok()) << made.status();
    return new TlsContext(*made);
  }();
  return *context;
}

// Both ends, and what lies between them.
struct Pair {
  // Gives the server what the client has sent, in pieces.
  Progress Give(absl::string_view sealed, size_t piece = SIZE_MAX) {
    Progress progress = Progress::kOpen;
    while (!sealed.empty() && progress == Progress::kOpen) {
      const absl::string_view part = sealed.substr(0, piece);
      sealed.remove_prefix(part.size());
      progress = stream->Take(part, 0, plain, to_send);
    }
    return progress;
  }
  void GiveBack() {
    client.Receive(to_send);
    to_send.clear();
  }
  // Until both are content.
  void Handshake(size_t piece = SIZE_MAX) {
    for (int i = 0; i < 10 && !(client.Handshake() && stream->established()); ++i) {
      ASSERT_EQ(Give(client.Sent(), piece), Progress::kOpen) << stream->problem();
      GiveBack();
    }
    ASSERT_TRUE(stream->established());
  }
  std::string TakePlain() {
    std::string text(plain.view());
    plain.Consume(plain.size());
    return text;
  }

  std::unique_ptr<TlsStream> stream = TlsStream::Accept(ServerContext());
  MemoryClient client;
  ReadBuffer plain;
  std::string to_send;
};

TEST(TlsStream, WordsComeThroughHoweverTheSealedBytesAreCut) {
  for (const size_t piece :
       {size_t{1}, size_t{2}, size_t{5}, size_t{6}, size_t{100}, size_t{5000}, SIZE_MAX}) {
    SCOPED_TRACE(piece);
    Pair once;
    once.Handshake(piece);
    once.client.Write("first");
    once.client.Write("second");
    ASSERT_EQ(once.Give(once.client.Sent(), piece), Progress::kOpen);
    EXPECT_EQ(once.TakePlain(), "firstsecond");
    ASSERT_TRUE(once.stream->Seal("answer", once.to_send));
    once.GiveBack();
    EXPECT_EQ(once.client.Read(), "answer");
  }
}

TEST(TlsStream, MegabytesGoBothWays) {
  Pair pair;
  pair.Handshake();
  std::string much;
  for (int i = 0; much.size() < 3'000'000; ++i) absl::StrAppend(&much, i, ",");
  pair.client.Write(much);
  ASSERT_EQ(pair.Give(pair.client.Sent(), 64 * 1024), Progress::kOpen);
  EXPECT_TRUE(pair.TakePlain() == much);
  ASSERT_TRUE(pair.stream->Seal(much, pair.to_send));
  pair.GiveBack();
  EXPECT_TRUE(pair.client.Read() == much);
}

TEST(TlsStream, BytesThatAreNoTlsFail) {
  for (const absl::string_view bytes :
       {"*1\r\n$4\r\nPING\r\n", "PING\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\xff\xff\xff\xff\xff\xff"}) {
    SCOPED_TRACE(bytes);
    Pair once;
    EXPECT_EQ(once.Give(bytes), Progress::kFailed);
    EXPECT_TRUE(absl::StartsWith(once.stream->problem(), "error:")) << once.stream->problem();
    EXPECT_FALSE(once.stream->Seal("x", once.to_send));
    EXPECT_EQ(once.Give("more"), Progress::kFailed);
  }
}

TEST(TlsStream, APartOfAHandshakeIsNone) {
  Pair pair;
  ASSERT_FALSE(pair.client.Handshake());
  const std::string hello = pair.client.Sent();
  for (size_t n = 0; n < hello.size(); ++n) {
    Pair once;
    ASSERT_EQ(once.Give(hello.substr(0, n), 50), Progress::kOpen);
    ASSERT_FALSE(once.stream->established());
    ASSERT_EQ(once.to_send, "");
    if (n % 16 != 0) continue;
    ASSERT_EQ(once.Give(hello.substr(n)), Progress::kOpen);
    ASSERT_NE(once.to_send, "");  // the server's hello
  }
}

TEST(TlsStream, AChangedByteIsNeverTakenForTheClients) {
  Pair pair;
  pair.Handshake();
  pair.client.Write("before");
  pair.client.Write("the request");
  std::string sealed = pair.client.Sent();
  sealed.back() = static_cast<char>(sealed.back() ^ 1);
  EXPECT_EQ(pair.Give(sealed), Progress::kFailed);
  EXPECT_EQ(pair.TakePlain(), "before");
  EXPECT_FALSE(pair.stream->Seal("answer", pair.to_send));
}

TEST(TlsStream, TheClientsGoodbyeEndsWhatItSaidBefore) {
  Pair pair;
  pair.Handshake();
  pair.client.Write("last words");
  SSL_shutdown(pair.client.ssl());
  EXPECT_EQ(pair.Give(pair.client.Sent()), Progress::kEnd);
  EXPECT_EQ(pair.TakePlain(), "last words");
  ASSERT_TRUE(pair.stream->Seal("the answer", pair.to_send));  // it may still listen
  pair.GiveBack();
  EXPECT_EQ(pair.client.Read(), "the answer");
}

TEST(TlsStream, TheServersGoodbyeIsSaidOnceAndIsTheLastWord) {
  Pair pair;
  pair.Handshake();
  ASSERT_TRUE(pair.stream->Seal("last words", pair.to_send));
  pair.stream->SealEnd(pair.to_send);
  pair.GiveBack();
  EXPECT_EQ(pair.client.Read(), "last words");
  EXPECT_TRUE(pair.client.AtEnd());
  pair.stream->SealEnd(pair.to_send);
  EXPECT_FALSE(pair.stream->Seal("more", pair.to_send));
  EXPECT_EQ(pair.to_send, "");
}

TEST(TlsStream, BeforeTheHandshakeNothingIsSaid) {
  Pair pair;
  pair.stream->SealEnd(pair.to_send);
  EXPECT_FALSE(pair.stream->Seal("x", pair.to_send));
  EXPECT_EQ(pair.to_send, "");
}

TEST(TlsStream, NewKeysAreAnsweredWithNewKeys) {
  Pair pair;
  pair.Handshake();
  ASSERT_EQ(SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
  pair.client.Write("with new keys");
  ASSERT_EQ(pair.Give(pair.client.Sent()), Progress::kOpen) << pair.stream->problem();
  EXPECT_EQ(pair.TakePlain(), "with new keys");
  ASSERT_TRUE(pair.stream->Seal("so is this", pair.to_send));
  pair.GiveBack();
  EXPECT_EQ(pair.client.Read(), "so is this");
}

}  // namespace
}  // namespace idemd::server
