"""What is played to idemd and to a stock Redis: subscriptions, and one event or none for each command."""

SUBSCRIPTIONS = {
    "channels": """
        b SUBSCRIBE one two one
        a PUBLISH one hello
        a PUBLISH three hello
        b UNSUBSCRIBE one
        a PUBLISH one hello
        a PUBLISH two hello
        a PUBSUB NUMSUB one two three
        a PUBSUB NUMSUB
        a PUBSUB CHANNELS
        a PUBSUB CHANNELS t*
        b UNSUBSCRIBE nothing
        b UNSUBSCRIBE
        b UNSUBSCRIBE
        b PING
        a PUBSUB CHANNELS""",
    "patterns": """
        b PSUBSCRIBE news.* [ab]? news.*
        c PSUBSCRIBE news.*
        a PUBSUB NUMPAT
        a PUBLISH news.x 1
        a PUBLISH a1 2
        a PUBLISH c1 3
        b PUNSUBSCRIBE news.*
        a PUBLISH news.x 4
        b SUBSCRIBE a1
        a PUBLISH a1 5
        b PUNSUBSCRIBE nothing
        b PUNSUBSCRIBE
        b PUNSUBSCRIBE
        a PUBSUB NUMPAT
        c close
        a PING""",
    "shard channels": """
        b SSUBSCRIBE one
        b SSUBSCRIBE two
        b SUBSCRIBE one
        b PSUBSCRIBE *
        a SPUBLISH one hello
        a PUBLISH one hello
        a PUBSUB SHARDNUMSUB one two three
        a PUBSUB SHARDCHANNELS o*
        b SUNSUBSCRIBE one
        a SPUBLISH one hello
        b SUNSUBSCRIBE nothing
        b SUNSUBSCRIBE
        b SUNSUBSCRIBE
        b UNSUBSCRIBE
        b PUNSUBSCRIBE""",
    "bytes": r"""
        b PSUBSCRIBE \x00*
        b SUBSCRIBE \xff\r\n
        a PUBLISH \x00\x01 \x80\x00\r\n
        a PUBLISH \xff\r\n x""",
    "errors": """
        a SUBSCRIBE
        a PSUBSCRIBE
        a SSUBSCRIBE
        a PUBLISH one
        a PUBLISH one two three
        a SPUBLISH one
        a PUBSUB
        a PUBSUB NOTHING
        a PUBSUB NUMPAT one
        a PUBSUB CHANNELS one two
        a PUBSUB SHARDCHANNELS one two
        a PUBSUB HELP one""",
    "commands of a subscriber": """
        b SUBSCRIBE one
        b GET key
        b CLIENT GETNAME
        b PUBSUB NUMPAT
        b NOTHING
        b GET
        b PING
        b PING x
        b PING x y
        b ECHO x
        b RESET
        b GET key
        b PSUBSCRIBE one
        b GET key
        b PUNSUBSCRIBE one
        b GET key
        b SSUBSCRIBE one
        b GET key
        b UNSUBSCRIBE one
        b GET key
        b SUNSUBSCRIBE one
        b GET key
        b SUBSCRIBE one
        b? QUIT""",
    "replies off": """
        b? CLIENT REPLY OFF
        b! SUBSCRIBE one
        b! PSUBSCRIBE o*
        a PUBLISH one hello
        b? SUBSCRIBE
        b! UNSUBSCRIBE one
        b! PUNSUBSCRIBE
        b CLIENT REPLY ON
        c? CLIENT REPLY SKIP
        c SUBSCRIBE one
        a PUBLISH one hello""",
    "transactions": """
        a? MULTI
        a? SUBSCRIBE one
        a? PSUBSCRIBE o*
        a EXEC
        b? MULTI
        b? PUBLISH one hello
        b DISCARD
        b PUBLISH one x""",
    "transactions publish": """
        b SUBSCRIBE one
        b PSUBSCRIBE o*
        a? MULTI
        a? PUBLISH one first
        a? PUBLISH two none
        a? PUBLISH one second
        a EXEC
        a? MULTI
        a? SPUBLISH one x
        a DISCARD
        a PUBLISH one third""",
}
# A message to the own connection comes before the reply; only RESP3 can see that.
OWN_MESSAGES = """
    b SUBSCRIBE one
    b PUBLISH one hello
    b PSUBSCRIBE o*
    b PUBLISH one hello
    b SSUBSCRIBE one
    b SPUBLISH one hello
    b PING"""

# What a client that keeps copies is told. In RESP3 it gets pushes; in RESP2 another connection has to listen for it.
TRACKING = {
    "plain": """
        a CLIENT TRACKING ON
        a CLIENT TRACKINGINFO
        a CLIENT GETREDIR
        b SET k 1
        a GET k
        b SET k 2
        b SET k 3
        a GET k
        a GET k
        a SET k 4
        a MGET k l m
        b DEL k
        b MSET l 1 m 1
        a EXISTS k
        a STRLEN l
        b EXPIRE l 100
        b EXPIRE l 100
        a TTL l
        b PERSIST l
        a GETRANGE l 0 1
        b RENAME l n
        a GET n
        b COPY m n REPLACE
        a TYPE n
        b APPEND n x
        a GET n
        b GETSET n 1
        b SELECT 3
        a GET n
        b SET n 1
        a GETEX n
        b SET n 2
        a CLIENT TRACKING OFF
        b SET n 3
        a CLIENT TRACKINGINFO
        a CLIENT GETREDIR""",
    "flush": """
        a CLIENT TRACKING ON
        c CLIENT TRACKING ON BCAST PREFIX never
        b SET k 1
        a GET k
        b FLUSHALL
        b SET k 2
        b FLUSHDB
        a FLUSHDB
        a GET k
        b SET k 1""",
    "transactions": """
        a CLIENT TRACKING ON
        b MSET k 1 l 1
        a? MULTI
        a? GET k
        a? SET l 2
        a? GET l
        a EXEC
        b SET k 2
        b SET l 2
        a GET k
        a? MULTI
        a? INCR k
        a? GET l
        a EXEC
        a? MULTI
        a? FLUSHDB
        a EXEC""",
    "no loop": """
        a CLIENT TRACKING ON NOLOOP
        a MGET k l
        a SET k 1
        b SET l 1
        a GET k
        b SET k 2
        a CLIENT TRACKINGINFO""",
    "broadcast": """
        a CLIENT TRACKING ON BCAST
        a CLIENT TRACKINGINFO
        b MSET c 1 a 1 b 1 a 2
        a SET k 1
        b? MULTI
        b? INCR x
        b? DEL x
        b? SET y 1
        b EXEC
        a CLIENT TRACKING OFF
        b SET k 2""",
    "broadcast with prefixes": """
        a CLIENT TRACKING ON BCAST PREFIX p: PREFIX q: NOLOOP
        b MSET p:1 1 q:1 1 r:1 1 p:2 2
        a MSET p:1 1 q:1 1
        a CLIENT TRACKING ON BCAST PREFIX r:
        b SET r:1 1
        a SET r:1 1
        a CLIENT TRACKINGINFO
        a CLIENT TRACKING ON BCAST PREFIX r
        a CLIENT TRACKING ON BCAST PREFIX r:1
        a CLIENT TRACKING ON BCAST PREFIX s PREFIX sa
        a CLIENT TRACKING ON BCAST PREFIX sa PREFIX s
        a CLIENT TRACKING ON
        a CLIENT TRACKING OFF
        a CLIENT TRACKING ON PREFIX a
        a CLIENT TRACKING ON BCAST OPTIN
        a CLIENT TRACKING ON BCAST OPTOUT""",
    "opt in": """
        a CLIENT CACHING YES
        a CLIENT TRACKING ON OPTIN
        a CLIENT TRACKINGINFO
        a GET k
        b SET k 1
        a! CLIENT CACHING YES
        a! CLIENT TRACKINGINFO
        a GET k
        a GET l
        b SET k 2
        b SET l 1
        a! CLIENT CACHING YES
        a! MULTI
        a! GET k
        a! GET l
        a EXEC
        a GET m
        b MSET k 1 l 1 m 1
        a CLIENT CACHING NO
        a CLIENT CACHING MAYBE
        a CLIENT TRACKING ON OPTOUT
        a CLIENT TRACKING ON OPTIN OPTOUT
        a CLIENT TRACKING ON""",
    "opt out": """
        a CLIENT TRACKING ON OPTOUT
        a! CLIENT CACHING NO
        a! CLIENT TRACKINGINFO
        a GET k
        a GET l
        b SET k 1
        b SET l 1
        a CLIENT CACHING YES
        a CLIENT TRACKING ON OPTIN""",
    "redirected": """
        r PING
        r SUBSCRIBE __redis__:invalidate
        a CLIENT TRACKING ON REDIRECT {r}
        a CLIENT GETREDIR
        a CLIENT TRACKINGINFO
        a GET k
        b SET k 1
        a GET k
        a SET k 2
        b FLUSHALL
        a GET k
        r UNSUBSCRIBE
        b SET k 1
        a GET k
        r SET k 2
        a CLIENT TRACKING ON REDIRECT {r} REDIRECT {r}
        a CLIENT TRACKING ON REDIRECT 1234567
        a CLIENT TRACKING ON REDIRECT x
        a CLIENT TRACKING ON REDIRECT
        a CLIENT TRACKING ON BCAST REDIRECT {r}
        a CLIENT TRACKING OFF
        a CLIENT TRACKING ON BCAST REDIRECT {r}
        r SUBSCRIBE __redis__:invalidate
        b MSET x 1 y 1
        r UNSUBSCRIBE
        r close
        b SET z 1
        a CLIENT TRACKINGINFO
        a CLIENT TRACKING OFF
        a CLIENT TRACKINGINFO""",
    "errors": """
        a CLIENT TRACKING
        a CLIENT TRACKING MAYBE
        a CLIENT TRACKING ON NOTHING
        a CLIENT TRACKING ON PREFIX
        a CLIENT CACHING
        a CLIENT GETREDIR x
        a CLIENT TRACKINGINFO x
        a CLIENT PAUSE
        a CLIENT PAUSE x
        a CLIENT PAUSE -1
        a CLIENT PAUSE 1 NOTHING
        a CLIENT PAUSE x NOTHING
        a CLIENT PAUSE 1 WRITE ALL
        a CLIENT PAUSE 0
        a CLIENT UNPAUSE
        a CLIENT UNPAUSE x
        a CLIENT NO-EVICT
        a CLIENT NO-EVICT MAYBE
        a CLIENT NO-EVICT ON
        a CLIENT NO-EVICT OFF
        a CLIENT UNBLOCK x
        a CLIENT UNBLOCK 1234567
        a CLIENT UNBLOCK 1234567 NOTHING
        a CLIENT REPLY MAYBE""",
    "replies off": """
        a CLIENT TRACKING ON
        a GET k
        a? CLIENT REPLY OFF
        b SET k 1
        a CLIENT REPLY ON""",
    "paused": """
        a CLIENT PAUSE 100000 WRITE
        a GET k
        b? SET k 1
        c? PUBLISH one hello
        a SET
        a? MULTI
        a? GET k
        a EXEC
        a GET k
        a CLIENT UNPAUSE
        b PING
        c PING
        a GET k""",
}

# Played by one connection while another listens to all events.
