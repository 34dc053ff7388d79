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

# Played by one connection while another listens to all events.
EVENTS = r"""
    SET a 1
    SET a 2
    SET a 2 EX 100
    SET a 2 PX 100000
    SET a 2 KEEPTTL
    SET a 2 NX
    SET a 2 XX
    SET b 2 XX
    SET b 2 GET
    SET b 3 GET
    SET c 3 NX GET
    SET d 3 XX GET
    SETNX a 1
    SETNX e 1
    SETEX e 100 1
    PSETEX e 100000 1
    SETEX e 0 1
    GETSET e 2
    GETSET f 2
    GETDEL f
    GETDEL f
    GET nothing
    GET a
    GETEX a
    GETEX nothing
    GETEX a EX 100
    GETEX a PX 100000
    GETEX a EXAT 4000000000
    GETEX a PERSIST
    GETEX a PERSIST
    GETEX a EXAT 1
    MSET a 1 b 2 a 3
    MSETNX a 1 g 2
    MSETNX g 1 h 2
    MGET a nothing g
    APPEND a x
    APPEND i x
    STRLEN nothing
    STRLEN a
    SETRANGE a 3 xyz
    SETRANGE j 3 xyz
    SETRANGE j 3 \x22\x22
    GETRANGE nothing 0 1
    SUBSTR nothing 0 1
    INCR k
    INCR k
    INCRBY k 5
    DECR k
    DECRBY k 5
    DECRBY l 5
    INCR j
    INCRBYFLOAT k 1.5
    INCRBYFLOAT m 1.5
    LCS a nothing
    SETBIT n 3 1
    SETBIT n 3 1
    SETBIT n 3 0
    SETBIT n 300 0
    SETBIT o 3 0
    GETBIT n 3
    GETBIT nothing 3
    BITCOUNT nothing
    BITPOS nothing 1
    BITFIELD n SET u8 0 255
    BITFIELD n SET u8 0 255
    BITFIELD n GET u8 0
    BITFIELD n INCRBY u8 0 1
    BITFIELD nothing GET u8 0
    BITFIELD p SET u8 0 0
    BITFIELD_RO nothing GET u8 0
    BITOP AND q a b
    BITOP AND q a b
    BITOP NOT q nothing
    BITOP NOT q nothing
    BITOP OR r a nothing
    EXISTS a nothing b
    TYPE nothing
    TTL nothing
    PTTL nothing
    EXPIRETIME nothing
    OBJECT ENCODING nothing
    OBJECT FREQ nothing
    TOUCH a nothing
    DUMP nothing
    EXPIRE a 100
    EXPIRE a 50 GT
    EXPIRE a 50 LT
    EXPIRE a 50 NX
    EXPIRE nothing 50
    PEXPIRE a 50000
    EXPIREAT a 4000000000
    PEXPIREAT a 4000000000000
    EXPIRE a -1
    EXPIRE b 100
    PERSIST b
    PERSIST b
    PERSIST nothing
    RENAME b s
    RENAME s c
    RENAME c c
    RENAME nothing s
    RENAMENX c e
    RENAMENX c t
    RENAMENX t t
    COPY t u
    COPY t u
    COPY t u REPLACE
    COPY nothing u REPLACE
    COPY t t2 DB 3
    COPY t t2 DB 3 REPLACE
    MOVE t 3
    MOVE t 3
    MOVE nothing 3
    SELECT 3
    SET t2 x
    MOVE t2 0
    SELECT 0
    RESTORE v 0 \x00\x01x\x0a\x00\xee\xa9\x1bL\xb7l\xcfk
    RESTORE w 0 nonsense
    DEL a b c d e
    UNLINK e t u nothing
    DEL nothing
    MULTI
    SET x 1
    INCR x
    GET nothing
    DEL x nothing
    EXEC
    MULTI
    SET x 1
    DISCARD
    SET y 1
    SWAPDB 0 1
    SWAPDB 0 1
    FLUSHDB
    SET y 1
    FLUSHALL"""
