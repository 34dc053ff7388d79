"""Commands, and the keyspace events that each of them sends: in general, and type by type."""
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

# The same for each type; what is random has one thing to choose from.
EVENTS_OF_TYPES = {
    "lists": r"""
        LPUSH l a
        RPUSH l b c d e
        LPUSHX l x
        LPUSHX nothing x
        RPUSHX l y
        RPUSHX nothing y
        LINSERT l BEFORE b z
        LINSERT l AFTER nothing z
        LINSERT nothing AFTER b z
        LSET l 0 q
        LSET nothing 0 q
        LREM l 1 q
        LREM l 1 nothing
        LTRIM l 0 -1
        LTRIM l 1 2
        LLEN nothing
        LRANGE nothing 0 1
        LINDEX nothing 0
        LPOS nothing a
        LPOP nothing
        LPOP l
        RPOP l
        RPUSH l 1 2 3 4
        LPOP l 2
        RPOP l 2
        RPUSH l 1 2 3 4
        LMOVE l m LEFT RIGHT
        LMOVE l l LEFT RIGHT
        RPOPLPUSH l m
        RPOPLPUSH nothing m
        LMPOP 2 nothing l LEFT
        LMPOP 1 nothing LEFT
        BLPOP l m 0
        BRPOP m 0
        RPUSH l 1
        BLMOVE l m LEFT LEFT 0
        RPUSH l 1
        BRPOPLPUSH l m 0
        BLMPOP 0 1 m LEFT COUNT 10
        RPUSH l 3 1 2
        SORT l STORE m
        SORT nothing STORE m
        SORT nothing
        LTRIM l 5 6
        SET s x
        LPUSH s x
        DEL s""",
    "sets": r"""
        SADD s a b c
        SADD s a
        SREM s a x
        SREM s x
        SREM nothing x
        SMOVE s t b
        SMOVE s t nothing
        SMOVE nothing t b
        SMOVE s t c
        SADD s a b
        SADD t b c
        SINTER s nothing
        SMEMBERS nothing
        SISMEMBER nothing a
        SMISMEMBER nothing a b
        SCARD nothing
        SRANDMEMBER nothing
        SRANDMEMBER nothing 2
        SSCAN nothing 0
        SINTERCARD 2 s nothing
        SINTERSTORE u s t
        SUNIONSTORE u s t
        SDIFFSTORE u s t
        SDIFFSTORE u s s
        SDIFFSTORE u s s
        SUNION nothing nothing
        SDIFF nothing s
        SPOP nothing
        SPOP nothing 2
        SADD one x
        SPOP one
        SADD one x
        SPOP one 5
        SADD one 1 2
        SPOP one 2
        DEL s t""",
    "hashes": r"""
        HSET h a 1 b 2
        HSET h a 1
        HSET h c 3
        HMSET h a 1 b 2
        HSETNX h a 1
        HSETNX h d 1
        HGET nothing a
        HGET h nothing
        HMGET nothing a b
        HGETALL nothing
        HKEYS nothing
        HVALS nothing
        HLEN nothing
        HEXISTS nothing a
        HSTRLEN nothing a
        HRANDFIELD nothing
        HRANDFIELD nothing 2
        HSCAN nothing 0
        HINCRBY h a 1
        HINCRBY h new 1
        HINCRBYFLOAT h a 1.5
        HINCRBY h2 a 1
        HINCRBYFLOAT h3 a 1.5
        HDEL h a nothing
        HDEL h nothing
        HDEL nothing a
        HDEL h b c d new
        COPY h2 h
        RENAME h h2
        DEL h2 h3""",
    "sorted sets": r"""
        ZADD z 1 a 2 b
        ZADD z 1 a
        ZADD z 3 a
        ZADD z NX 4 a
        ZADD z XX 4 c
        ZADD z XX CH 5 a
        ZADD z INCR 1 a
        ZADD z NX INCR 1 a
        ZINCRBY z 1 a
        ZINCRBY z 1 c
        ZINCRBY y 1 c
        ZREM z c nothing
        ZREM z nothing
        ZREM nothing a
        ZCARD nothing
        ZSCORE nothing a
        ZMSCORE nothing a
        ZRANK nothing a
        ZREVRANK nothing a
        ZCOUNT nothing 0 1
        ZLEXCOUNT nothing - +
        ZRANGE nothing 0 1
        ZREVRANGE nothing 0 1
        ZRANGEBYSCORE nothing 0 1
        ZRANGEBYLEX nothing - +
        ZRANDMEMBER nothing
        ZSCAN nothing 0
        ZPOPMIN nothing
        ZPOPMIN y
        ZADD y 1 a 2 b 3 c 4 d
        ZPOPMAX y
        ZPOPMIN y 2
        ZMPOP 2 nothing y MIN
        ZADD y 1 a 2 b 3 c 4 d 5 e
        ZREMRANGEBYRANK y 0 0
        ZREMRANGEBYRANK y 10 20
        ZREMRANGEBYSCORE y 2 3
        ZREMRANGEBYSCORE y 100 200
        ZREMRANGEBYLEX y [d [d
        ZREMRANGEBYLEX nothing - +
        ZREMRANGEBYSCORE y -inf +inf
        ZADD y 1 a 2 b
        ZUNIONSTORE u 2 y z
        ZINTERSTORE u 2 y z
        ZINTERSTORE u 2 y nothing
        ZINTERSTORE u 2 y nothing
        ZDIFFSTORE u 2 y nothing
        ZRANGESTORE u y 0 -1
        ZRANGESTORE u nothing 0 -1
        ZUNION 2 y nothing
        ZINTER 2 nothing y
        ZDIFF 2 nothing y
        ZINTERCARD 2 y nothing
        BZPOPMIN y 0
        BZPOPMAX y 0
        ZADD y 1 a
        BZMPOP 0 1 y MIN
        DEL z""",
    "streams": r"""
        XADD x 1-1 f v
        XADD x 2-1 f v
        XADD x 1-1 f v
        XADD x MAXLEN 1 3-1 f v
        XADD nothing NOMKSTREAM * f v
        XLEN nothing
        XRANGE nothing - +
        XREVRANGE nothing + -
        XREAD COUNT 1 STREAMS nothing 0
        XGROUP CREATE x g 0
        XGROUP CREATE x g 0
        XGROUP CREATE y g 0 MKSTREAM
        XGROUP CREATECONSUMER x g alice
        XGROUP CREATECONSUMER x g alice
        XREADGROUP GROUP g bob COUNT 1 STREAMS x >
        XREADGROUP GROUP g bob COUNT 1 STREAMS x >
        XACK x g 3-1
        XACK x g 3-1
        XADD x 4-1 f v
        XREADGROUP GROUP g bob COUNT 1 STREAMS x >
        XCLAIM x g carol 0 4-1
        XAUTOCLAIM x g dave 0 0
        XPENDING x g
        XGROUP SETID x g 0
        XGROUP DELCONSUMER x g alice
        XGROUP DELCONSUMER x g nobody
        XGROUP DESTROY x g
        XGROUP DESTROY x g
        XDEL x 4-1
        XDEL x 9-9
        XDEL nothing 1-1
        XADD x 5-1 f v
        XADD x 6-1 f v
        XTRIM x MAXLEN 1
        XTRIM x MAXLEN 1
        XTRIM nothing MAXLEN 1
        XSETID x 10-1
        XINFO STREAM nothing
        DEL x y""",
    "hyperloglogs": r"""
        PFADD p a b
        PFADD p a
        PFADD q
        PFADD q
        PFCOUNT p nothing
        PFCOUNT nothing
        PFMERGE r p q
        PFMERGE r""",
    "geo": r"""
        GEOADD g 13.361389 38.115556 palermo
        GEOADD g 13.361389 38.115556 palermo
        GEOPOS nothing a
        GEODIST nothing a b
        GEOHASH nothing a
        GEOSEARCH nothing FROMLONLAT 15 37 BYRADIUS 200 km
        GEOSEARCHSTORE h g FROMLONLAT 15 37 BYRADIUS 200 km
        GEOSEARCHSTORE h nothing FROMLONLAT 15 37 BYRADIUS 200 km
        GEORADIUS g 15 37 200 km STORE h
        GEORADIUS nothing 15 37 200 km STORE h
        DEL g""",
    "scripts": r"""
        EVAL return\x20redis.call('set',KEYS[1],ARGV[1]) 1 k v
        EVAL return\x20redis.call('get',KEYS[1]) 1 nothing
        EVAL redis.call('incr',KEYS[2])\x20return\x20redis.call('del',KEYS[1]) 2 k n
        EVAL redis.call('publish','__key','x')\x20return\x20redis.call('incr',KEYS[1]) 1 n
        EVAL return\x20redis.call('get','undeclared') 0""",
}
