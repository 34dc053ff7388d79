"""Hostile peers: they do not read, write a byte at a time, go away half way, come by the thousand, or ask for far too much."""
import resource
import socket
import threading
import time

from battery import drain, reset
from lib.resp import Error, encode
from lib.server import eventually

MIB = 1024 * 1024
PING = encode(["PING"])
PONG = b"+PONG\r\n"


def send_until_stuck(socks, data, bytes_max):
    """Sends `data` over and over on each, up to `bytes_max`, until for a while none of them takes any more."""
    view = memoryview(data * max(1, 65536 // len(data)))
    sent = dict.fromkeys(socks, 0)
    for sock in socks:
        sock.setblocking(False)
    last = time.monotonic()
    while sent and time.monotonic() - last < 0.2:
        for sock in list(sent):
            try:
                n = sock.send(view[sent[sock] % len(view):][:bytes_max - sent[sock]])
            except BlockingIOError:
                continue
            except ConnectionError:
                n = bytes_max
            last = time.monotonic()
            sent[sock] += n
            if sent[sock] >= bytes_max:
                del sent[sock]
        time.sleep(0.001)


def many_at_once(battery, count, begin, end):
    """What is wrong with the server's answers to others after `begin` was done with so many connections."""
    socks = []
    try:
        for _ in range(count):
            socks.append(battery.raw(receive_bytes=4096))
        begin(socks)
        return battery.calm()
    finally:
        for sock in socks:
            end(sock)


def all_say(data):
    return lambda socks: [sock.sendall(data) for sock in socks]


def leave(sock):
    sock.close()


# --- peers that do not read

def never_reads(battery):
    def deep(requests, count, bytes_max=8 * MIB):
        """`count` connections send what they can, and read nothing."""
        with battery.connect() as client:
            client.call("SET", "big", b"x" * 100_000)
            client.pipeline([["RPUSH", "list", *["y" * 50] * 1000]])
        data = b"".join(map(encode, requests))
        return many_at_once(battery, count, lambda socks: send_until_stuck(socks, data, bytes_max), leave)

    requests = {
        "PING": [["PING"]],
        "errors": [["NOSUCHCOMMAND", "x" * 100]],
        "GET of a long value": [["GET", "big"]],
        "LRANGE": [["LRANGE", "list", "0", "-1"]],
        "writes": [["SET", "k", "v"], ["INCR", "n"]],
        "COMMAND": [["COMMAND"]],
        "COMMAND DOCS": [["COMMAND", "DOCS"]],
        "CONFIG GET": [["CONFIG", "GET", "*"]],
        "INFO": [["INFO", "ALL"]],
        "CLIENT LIST": [["CLIENT", "LIST"]],
        "IDEM.RESERVE": [["IDEM.RESERVE", "r"], ["IDEM.STATUS", "r"]],
        "EVAL": [["EVAL", "return redis.call('get', 'big')", "1", "big"]],
        "transactions": [["MULTI"], ["GET", "big"], ["GET", "big"], ["EXEC"]],
        "ECHO": [["ECHO", "z" * 50_000]],
        "HELLO": [["HELLO", "3"]],
    }
    for name, words in requests.items():
        yield f"8 pipelines of {name}", lambda w=words: deep(w, 8)
    yield "100 pipelines of PING", lambda: deep([["PING"]], 100, MIB)
    yield "empty lines", lambda: deep([[]], 4)

    def read_at_last(count):
        """A deep pipeline whose replies are read when all of it has been sent: they are all there, in order."""
        data = b"".join(encode(["ECHO", f"{i}"]) for i in range(count))
        with battery.raw() as sock:
            sender = threading.Thread(target=sock.sendall, args=(data,))
            sender.start()
            time.sleep(0.2)
            expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(count))
            came = bytearray()
            sock.settimeout(20)
            while len(came) < len(expected):
                more = sock.recv(1 << 20)
                if not more:
                    break
                came += more
            sender.join()
        return None if came == expected else f"{len(came)} bytes of {len(expected)}"

    yield "a pipeline of 100 000, read at last", lambda: read_at_last(100_000)

    def no_replies():
        with battery.connect() as client:
            client.send("CLIENT", "REPLY", "OFF")
            client.send_raw(encode(["GET", "big"]) * 20_000 + encode(["CLIENT", "REPLY", "ON"]))
            return None if bytes(client.read(timeout=20)) == b"OK" else "no OK"

    yield "CLIENT REPLY OFF", no_replies


def slow(battery):
    def reads(size, seconds):
        """A little at a time of a lot: the rest waits in the server, and no more than its limit."""
        with battery.connect() as client:
            client.call("SET", "big", b"x" * 500_000)
        socks = [battery.raw(receive_bytes=4096) for _ in range(10)]
        for sock in socks:
            sock.sendall(encode(["GET", "big"]) * 50)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for sock in socks:
                sock.recv(size)
            time.sleep(0.01)
        wrong = battery.calm()
        for sock in socks:
            sock.close()
        return wrong

    def writes(data, pause, at_once=50):
        """A byte now and then, on many connections: each gets its answer in the end."""
        socks = [battery.raw() for _ in range(at_once)]
        for i in range(len(data)):
            for sock in socks:
                sock.sendall(data[i:i + 1])
            time.sleep(pause)
        wrong = sum(sock.recv(100) != PONG for sock in socks)
        for sock in socks:
            sock.close()
        return f"{wrong} wrong answers" if wrong else None

    yield "readers of a byte", lambda: reads(1, 0.7)
    yield "readers of a kilobyte", lambda: reads(1024, 0.7)
    yield "writers of an array", lambda: writes(PING, 0.02)
    yield "writers of a line", lambda: writes(b"PING\r\n", 0.02)

    def half_a_word(count, size):
        """Long words that never end, on many connections."""
        head = b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % size
        return many_at_once(battery, count, lambda socks: send_until_stuck(socks, head + b"x" * (size // 2), size // 2), leave)

    yield "100 words of which half has come", lambda: half_a_word(100, 200_000)
    yield "12 long words of which half has come", lambda: half_a_word(12, 2 * MIB)
    yield "1 000 words that are only promised", lambda: many_at_once(
        battery, 1000, all_say(b"*2\r\n$4\r\nECHO\r\n$2097152\r\n"), leave)

    def too_much():
        """More bytes of one request than a client may have waiting."""
        with battery.raw() as sock:
            head = b"*100\r\n"
            word = b"$1000000\r\n" + b"x" * 1_000_000 + b"\r\n"
            try:
                sock.sendall(head + word * 10)
            except ConnectionError:
                pass
            _, closed = drain(sock)
        return None if closed else "a request beyond client-query-buffer-limit is still awaited"

    for i in range(3):
        yield f"a request beyond the limit, {i}", too_much

    def endless_transaction(command):
        """MULTI, and no EXEC: what is queued is bounded."""
        with battery.raw() as sock:
            sock.sendall(encode(["MULTI"]))
            data = encode(command)
            chunk = data * max(1, 100_000 // len(data))
            came = []
            reader = threading.Thread(target=lambda: came.append(drain(sock, 20)[0]))
            reader.start()
            sent = 0
            while sent < 12 * MIB:
                sock.sendall(chunk)
                sent += len(chunk)
            sock.sendall(encode(["EXEC"]))
            sock.shutdown(socket.SHUT_WR)
            reader.join()
        if b"-ERR the transaction is longer" not in came[0]:
            return "a transaction takes any number of commands"
        return None if b"-EXECABORT" in came[0] else "it was carried out"

    yield "a transaction that never ends, of long words", lambda: endless_transaction(["SET", "k", "v" * 10_000])
    yield "a transaction that never ends, of short words", lambda: endless_transaction(["SET", "k", "v"])
    yield "a transaction that never ends, of many words", lambda: endless_transaction(["DEL"] + ["k"] * 1000)


# --- peers that go away

def half_open(battery):
    def end_of_input(requests, replies):
        """Our side is shut: what was asked is still answered, then the connection ends."""
        with battery.raw() as sock:
            sock.sendall(requests)
            sock.shutdown(socket.SHUT_WR)
            came, closed = drain(sock)
        return None if came == replies and closed else f"{came[:100]!r}, closed: {closed}"

    yield "nothing was said", lambda: end_of_input(b"", b"")
    yield "one request", lambda: end_of_input(PING, PONG)
    yield "10 000 requests", lambda: end_of_input(PING * 10_000, PONG * 10_000)
    yield "a request and a half", lambda: end_of_input(PING + PING[:7], PONG)
    yield "in a transaction", lambda: end_of_input(encode(["MULTI"]) + PING, b"+OK\r\n+QUEUED\r\n")

    blocking = {
        "BLPOP": ["BLPOP", "nobody", "0"], "BZPOPMIN": ["BZPOPMIN", "nobody", "0"], "BLMOVE": ["BLMOVE", "a", "b", "LEFT", "LEFT", "0"],
        "XREAD": ["XREAD", "BLOCK", "0", "STREAMS", "nobody", "$"], "WAIT": ["WAIT", "5", "0"],
        "IDEM.RESERVE": ["IDEM.RESERVE", "held", "WAIT", "60000"], "SUBSCRIBE": ["SUBSCRIBE", "c"], "MONITOR": ["MONITOR"],
    }

    def vanish(words, count, go):
        with battery.connect() as client:
            client.call("IDEM.RESERVE", "held", "LEASE", "60000")
            before = connected(client)
            socks = [battery.raw() for _ in range(count)]
            for sock in socks:
                sock.sendall(encode(words))
            time.sleep(0.02)
            for sock in socks:
                go(sock)
            eventually(lambda: connected(client) <= before, "those who are gone are forgotten")
            client.call("RPUSH", "nobody", "x")
            if words[0] == "BLPOP" and client.call("LLEN", "nobody") != 1:
                return "an element went to somebody who is gone"
        return None

    for name, words in blocking.items():
        yield f"200 that vanish in {name}", lambda w=words: vanish(w, 200, leave)
        yield f"200 that are cut off in {name}", lambda w=words: vanish(w, 200, reset)

    def cut_while_replies_are_written():
        socks = [battery.raw(receive_bytes=4096) for _ in range(20)]
        for sock in socks:
            sock.sendall(encode(["COMMAND"]) * 5)
            sock.recv(100)
        for sock in socks:
            reset(sock)
        return None

    yield "cut off while replies are written", cut_while_replies_are_written


def connected(client):
    for line in bytes(client.call("INFO", "clients")).decode().splitlines():
        if line.startswith("connected_clients:"):
            return int(line.split(":")[1])
    raise AssertionError("no connected_clients")


def crowds(battery):
    def come_and_go(count, go, hello=b""):
        for _ in range(count):
            sock = battery.raw()
            if hello:
                sock.sendall(hello)
            go(sock)
        with battery.connect() as client:
            eventually(lambda: connected(client) < 20, "all who left are forgotten")
        return None

    yield "2 000 that come and go", lambda: come_and_go(2000, leave)
    yield "2 000 that are cut off", lambda: come_and_go(2000, reset)
    yield "2 000 that are cut off in a request", lambda: come_and_go(2000, reset, PING[:9])
    yield "2 000 that ask and do not wait", lambda: come_and_go(2000, leave, PING * 10)

    def at_once(count):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        return many_at_once(battery, count, all_say(PING), leave)

    yield "1 500 at once", lambda: at_once(1500)

    def beyond_maxclients():
        with battery.connect() as client:
            client.expect_ok("CONFIG", "SET", "maxclients", "100")
            socks = [battery.raw() for _ in range(300)]
            refused = 0
            for sock in socks:
                came, closed = drain(sock, 0.02)
                refused += closed and b"max number of clients" in came
            for sock in socks:
                sock.close()
            client.expect_ok("CONFIG", "SET", "maxclients", "10000")
            eventually(lambda: connected(client) < 20, "all who left are forgotten")
        return None if refused >= 200 else f"{refused} refused"

    yield "more than maxclients", beyond_maxclients

    def killed():
        socks = [battery.raw() for _ in range(200)]
        for sock in socks:
            sock.sendall(encode(["BLPOP", "nobody", "0"]))
        with battery.connect() as client:
            for line in bytes(client.call("CLIENT", "LIST")).decode().splitlines():
                if "cmd=blpop" in line:
                    client.call("CLIENT", "KILL", "ID", line.split()[0][3:])
        for sock in socks:
            sock.close()
        return None

    yield "200 that wait are killed", killed


# --- asking for too much

def floods(battery):
    def flood(*commands, replies=None, resp=2):
        """All commands on one connection, read to the end; then it goes away."""
        with battery.connect(resp=resp, timeout=20) as client:
            data = b"".join(map(encode, commands))
            sender = threading.Thread(target=client.sock.sendall, args=(data,))
            sender.start()
            for _ in range(len(commands) if replies is None else replies):
                client.read() if resp == 2 else client.hear()
            sender.join()
        return None

    def patterns():
        with battery.connect(timeout=20) as client, battery.connect() as other:
            client.call("PSUBSCRIBE", "*a" * 500)
            started = time.monotonic()
            other.call("PUBLISH", "a" * 10_000 + "b", "x")
            other.call("KEYS", "*a" * 500 + "b")
            return None if time.monotonic() - started < 2 else f"took {time.monotonic() - started:.1f} s"

    def tokens():
        with battery.connect() as client:
            reply = client.call("IDEM.TOKEN", "t:", "COUNT", "1000000000")
            return None if isinstance(reply, Error) else "a billion tokens"

    def memory_limit():
        """Keys until there is no room: an error, and what is there can be read and removed."""
        with battery.connect(timeout=20) as client:
            for i in range(60):
                reply = client.call("SET", f"fill{i}", b"x" * 500_000)
                if isinstance(reply, Error):
                    break
            if not isinstance(reply, Error) or not bytes(reply).startswith(b"OOM"):
                return f"never full: {reply!r}"
            if client.call("STRLEN", "fill0") != 500_000 or client.call("DEL", *[f"fill{j}" for j in range(60)]) != i:
                return "what is there cannot be read or removed"
            client.expect_ok("SET", "fill", "x")
        return None

    names = [f"channel:{i}" for i in range(20_000)]
    yield "SUBSCRIBE to 20 000", lambda: flood(["SUBSCRIBE", *names], replies=20_000)
    yield "PSUBSCRIBE to 20 000", lambda: flood(["PSUBSCRIBE", *names], replies=20_000)
    yield "SSUBSCRIBE to 20 000", lambda: flood(["SSUBSCRIBE", *names], replies=20_000)
    yield "SUBSCRIBE, one by one, in RESP3", lambda: flood(*[["SUBSCRIBE", name] for name in names[:5000]], resp=3)
    yield "SUBSCRIBE and UNSUBSCRIBE", lambda: flood(*[[verb, "c"] for verb in ("SUBSCRIBE", "UNSUBSCRIBE") * 3000])
    yield "patterns that take long", lambda: patterns()
    yield "WATCH of 100 000", lambda: flood(*[["WATCH", *[f"w{i}{j}" for j in range(1000)]] for i in range(100)])
    yield "CLIENT TRACKING of 1 000 prefixes", lambda: flood(
        ["CLIENT", "TRACKING", "ON", "BCAST", *sum([["PREFIX", f"p{i}:"] for i in range(1000)], [])])
    yield "a name of 1 MiB", lambda: flood(["CLIENT", "SETNAME", "n" * MIB])
    yield "2 000 scripts", lambda: flood(*[["SCRIPT", "LOAD", f"return {i}"] for i in range(2000)], ["SCRIPT", "FLUSH"])
    yield "1 000 EVAL of fresh scripts", lambda: flood(*[["EVAL", f"return {i}", "0"] for i in range(1000)], ["SCRIPT", "FLUSH"])
    yield "the slow log", lambda: flood(["CONFIG", "SET", "slowlog-log-slower-than", "0"], *[["ECHO", "x" * 10_000]] * 1000,
                                        ["CONFIG", "SET", "slowlog-log-slower-than", "10000"])
    yield "kinds of errors", lambda: flood(*[["EVAL", f"return redis.error_reply('E{i} x')", "0"] for i in range(2000)], ["CONFIG", "RESETSTAT"])
    yield "namespaces", lambda: flood(*[["IDEM.RESERVE", f"ns{i}:k"] for i in range(5000)])
    yield "as many tokens as one may want", lambda: tokens()
    yield "MSET of 10 000", lambda: flood(["MSET", *sum([[f"m{i}", "v"] for i in range(10_000)], [])])
    yield "MGET of 100 000", lambda: flood(["MGET", *["m"] * 100_000])
    yield "EXISTS of 100 000", lambda: flood(["EXISTS", *["m"] * 100_000])
    yield "keys beyond maxmemory", memory_limit


def messages(battery):
    """Subscribers and monitors that never read while others publish."""
    def deaf(words, publish, count=2, rounds=400, rest=16):
        socks = [battery.raw(receive_bytes=4096) for _ in range(count)]
        for sock in socks:
            sock.sendall(encode(words))
        time.sleep(0.05)
        with battery.connect(timeout=20) as client:
            for _ in range(rounds):
                client.pipeline([publish] * rest)
            wrong = battery.calm()
        ended = 0
        for sock in socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)  # through the small one what the kernel still has would take a minute
            ended += drain(sock, 15.0)[1]
            sock.close()
        return wrong or (None if ended == count else f"{count - ended} of {count} that never read were kept")

    long = "m" * 10_000
    yield "SUBSCRIBE", lambda: deaf(["SUBSCRIBE", "c"], ["PUBLISH", "c", long])
    yield "PSUBSCRIBE", lambda: deaf(["PSUBSCRIBE", "*"], ["PUBLISH", "c", long])
    yield "SSUBSCRIBE", lambda: deaf(["SSUBSCRIBE", "c"], ["SPUBLISH", "c", long])
    yield "MONITOR", lambda: deaf(["MONITOR"], ["ECHO", long])

    def many_subscribers():
        socks = [battery.raw() for _ in range(300)]
        for sock in socks:
            sock.sendall(encode(["SUBSCRIBE", "c"]))
            drain(sock, 0.001)
        with battery.connect(timeout=20) as client:
            client.pipeline([["PUBLISH", "c", "x" * 100]] * 100)
        for sock in socks:
            sock.close()
        return None

    yield "300 subscribers", many_subscribers

    def publish_to_oneself():
        with battery.connect(resp=3, timeout=20) as client:
            client.send("SUBSCRIBE", "c")
            client.hear()
            replies = client.pipeline([["PUBLISH", "c", "x"]] * 2000)
            return None if replies == [1] * 2000 and len(client.pushes) == 2000 else "messages are missing"

    yield "a publisher that hears itself", publish_to_oneself

    def replica_that_never_reads():
        socks = [battery.raw(receive_bytes=4096) for _ in range(3)]
        for sock in socks:
            sock.sendall(encode(["SYNC"]))
        with battery.connect(timeout=20) as client:
            client.pipeline([["SET", "k", "v" * 1000]] * 500)
        for sock in socks:
            reset(sock)
        return None

    yield "SYNC and never reading", replica_that_never_reads
    yield "PSYNC and going away", lambda: many_at_once(
        battery, 8, all_say(encode(["PSYNC", "?", "-1"])), reset)


def huge(battery):
    size = 2 * MIB

    def key(name):
        with battery.connect(timeout=20) as client:
            client.expect_ok("SET", name, "v")
            if bytes(client.call("GET", name)) != b"v" or client.call("EXISTS", name) != 1:
                return "the key is not there"
            if [bytes(found) for found in client.call("KEYS", "*")] != [name] or client.call("DEL", name) != 1:
                return "the key is another one"
            reply = client.call("IDEM.RESERVE", name, "CLAIM", "c")
            if isinstance(reply, Error) and len(name) < 1000:
                return repr(reply)
            client.call("IDEM.RELEASE", name, "1")
            client.call("DEL", name)
        return None

    for name in (b"", b"\x00", b"\x00" * 300, b"\r\n", b"*3\r\n$3\r\nSET\r\n", b"k" * 255, b"k" * 256, b"k" * 65535, b"k" * 65536, b"k" * size,
                 b"\xff" * 1000, bytes(range(256)), b"{" * 1000, b"{}", b"a{" + b"x" * 100_000 + b"}"):
        yield f"a key of {len(name)} bytes, {name[:8]!r}", lambda n=name: key(n)

    def value(*words):
        with battery.connect(timeout=20) as client:
            reply = client.call(*words)
            return None if isinstance(reply, Error) else f"{reply!r}"[:100]

    def grown(*commands):
        with battery.connect(timeout=20) as client:
            replies = [client.call(*words) for words in commands]
            return None if isinstance(replies[-1], Error) else f"{replies!r}"[:100]

    def flood_of(*commands):
        with battery.connect(timeout=20) as client:
            for words in commands:
                client.send(*words)
                client.read()
        return None

    def result():
        with battery.connect(timeout=20) as client:
            fence = client.call("IDEM.RESERVE", "r")[1]
            reply = client.call("IDEM.COMPLETE", "r", fence, b"x" * (size - 100))
            return None if bytes(reply) == b"NORESULT" else repr(reply)

    longest, long = b"x" * size, b"x" * MIB
    yield "APPEND beyond the longest string", lambda: grown(["APPEND", "s", longest], ["APPEND", "s", "x"])
    yield "SETRANGE beyond the longest string", lambda: value("SETRANGE", "s", str(size), "x")
    yield "SETBIT beyond the longest string", lambda: value("SETBIT", "s", str(size * 8), "1")
    yield "a result that is too long", lambda: result()
    yield "a member of 2 MiB", lambda: flood_of(["SADD", "s", longest], ["ZADD", "z", "1", longest], ["HSET", "h", long, long],
                                                ["RPUSH", "l", longest], ["XADD", "x", "*", long, long], ["DEL", "s", "z", "h", "l", "x"])
    yield "LCS of long strings", lambda: flood_of(["MSET", "s1", b"a" * 20_000, "s2", b"b" * 20_000], ["LCS", "s1", "s2"])
    yield "LCS of strings that are too long", lambda: flood_of(["MSET", "s1", b"a" * 200_000, "s2", b"b" * 200_000], ["LCS", "s1", "s2"])
    yield "repetitions without end", lambda: flood_of(["SADD", "s", "a", "b"], ["SRANDMEMBER", "s", "-67108864"])
    yield "repetitions without end of fields", lambda: flood_of(["HSET", "h", "a", "b"], ["HRANDFIELD", "h", "-67108864", "WITHVALUES"])
    yield "repetitions without end of members", lambda: flood_of(["ZADD", "z", "1", "b"], ["ZRANDMEMBER", "z", "-67108864", "WITHSCORES"])
    yield "repetitions of a long member", lambda: flood_of(["SADD", "s", b"m" * 100_000], ["SRANDMEMBER", "s", "-1000000"])
    yield "an EXEC with many long replies", lambda: flood_of(["SET", "s", b"x" * 500_000], ["MULTI"], *[["GET", "s"]] * 40, ["EXEC"])

    def run_script(script):
        """Whatever its reply is, however deep."""
        with battery.raw() as sock:
            sock.settimeout(20)
            sock.sendall(encode(["EVAL", script, "0"]) + encode(["SCRIPT", "FLUSH", "SYNC"]) + PING)
            came = bytearray()
            while not came.endswith(PONG):
                more = sock.recv(1 << 20)
                if not more:
                    return f"closed after {bytes(came[:100])!r}"
                came += more
        return None

    bombs = {
        "strings": "local s = 'x' while true do s = s .. s end",
        "tables": "local t = {} while true do t[#t + 1] = {} end",
        "a reply": "return string.rep('x', 1000000000)",
        "a deep reply": "local t = {} for i = 1, 100000 do t = {t} end return t",
        "a table that holds itself": "local t = {} t[1] = t return t",
        "patterns": "return string.find(string.rep('a', 30000), string.rep('a?', 30) .. string.rep('a', 30))",
        "cjson": "return cjson.decode(string.rep('[', 100000))",
        "cmsgpack": "return cmsgpack.unpack(string.rep('\\221', 100000))",
        "struct": "return struct.pack('i99999999999', 1)",
        "many arguments": "return redis.call('del', unpack({}, 1, 10000))",
        "bit": "return bit.lshift(1, 1e400)",
        "a reply of many": "local t = {} for i = 1, 300000 do t[i] = i end return t",
    }
    for name, script in bombs.items():
        yield f"a script: {name}", lambda s=script: run_script(s)
    yield "a script of 2 MiB", lambda: flood_of(["EVAL", b"--" + b"x" * (size - 2), "0"], ["SCRIPT", "FLUSH", "SYNC"])
    yield "a script of brackets", lambda: flood_of(["EVAL", b"return " + b"(" * 100_000, "0"], ["SCRIPT", "FLUSH", "SYNC"])
    yield "a function library of brackets", lambda: flood_of(["FUNCTION", "LOAD", b"#!lua name=x\n" + b"{" * 100_000])
    dumps = [b"", b"\x00", b"\xff" * 100, b"\x00\x80" + b"\xff" * 8 + b"\x0a\x00" + b"\x00" * 8]
    for dump in dumps:
        yield f"RESTORE of {dump[:10]!r}", lambda d=dump: value("RESTORE", "d", "0", d)
        yield f"FUNCTION RESTORE of {dump[:10]!r}", lambda d=dump: value("FUNCTION", "RESTORE", d)


def cases(battery):
    battery.run("huge", huge(battery))
    battery.run("crowds", crowds(battery))
    battery.run("half open", half_open(battery))
    battery.run("slow", slow(battery))
    battery.run("never reads", never_reads(battery))
    battery.run("floods", floods(battery))


def cases_of_messages(battery):
    battery.run("messages", messages(battery))
