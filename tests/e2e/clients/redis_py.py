"""redis-py against a running idemd: sync and asyncio, pipelines, passwords, unix socket, locks, native commands.

usage: redis_py.py PORT SOCKET PASSWORD_PORT PASSWORD
"""
import asyncio
import sys
import traceback

import redis
import redis.asyncio

PORT, SOCKET, PASSWORD_PORT, PASSWORD = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
results = {True: 0, False: 0}


class Skipped(Exception):
    """The server lacks the command that this test is about."""


def test(function):
    try:
        function()
        good = True
    except Skipped as lacking:
        print(f"    redis-py {function.__name__}: skipped, the server has no {lacking}")
        return
    except Exception:
        good = False
        print(f"FAILED  {function.__name__}")
        traceback.print_exc(file=sys.stdout)
    results[good] += 1


def need(client, name):
    if name.lower().encode() not in client.execute_command("COMMAND LIST"):
        raise Skipped(name)


def strings(client, tag):
    binary = bytes(range(256))
    assert client.set(tag + "k", binary) is True
    assert client.get(tag + "k") == binary
    assert client.set(tag + "k", b"x", nx=True) is None
    assert client.set(tag + "k", b"x", px=50_000, xx=True) is True
    assert 45_000 < client.pttl(tag + "k") <= 50_000
    assert client.mset({tag + "a": 1, tag + "b": 2}) is True
    assert client.mget(tag + "a", tag + "absent", tag + "b") == [b"1", None, b"2"]
    assert client.incrby(tag + "a", 41) == 42
    assert client.getdel(tag + "a") == b"42"
    large = b"v" * 5_000_000
    assert client.set(tag + "large", large) and client.get(tag + "large") == large
    assert client.exists(tag + "k", tag + "b", tag + "a") == 2
    assert set(client.scan_iter(match=tag + "*")) == {(tag + n).encode() for n in ("k", "b", "large")}
    assert client.delete(tag + "k", tag + "b", tag + "large") == 3
    try:
        client.incr(tag + "k", "x")
        raise AssertionError("no error")
    except redis.ResponseError as error:
        assert "not an integer" in str(error)


def native(client, tag):
    call = client.execute_command
    token = call("IDEM.TOKEN", tag + "t:", "VALUE", "user-1", "EX", 60)
    key = tag.encode() + b"t:" + token
    assert call("IDEM.CONSUME", key, "IFEQ", "user-2") == 0
    assert call("IDEM.CONSUME", key, "IFEQ", "user-1", "BY", "me") == 1
    assert call("IDEM.CONSUME", key, "IFEQ", "user-1", "BY", "me") == 1
    assert call("IDEM.CONSUME", key, "REASON") == b"DUPLICATE"
    status, fence, attempt, ms, code, payload = call("IDEM.RESERVE", tag + "job", "CLAIM", "c", "FINGERPRINT", b"\x00\xff")
    assert (status, attempt, code, payload) == (b"RESERVED", 1, 0, None) and 0 < ms <= 30_000
    assert call("IDEM.RESERVE", tag + "job", "CLAIM", "c")[:2] == [b"HELD", fence]
    assert call("IDEM.RESERVE", tag + "job")[0] == b"PENDING"
    assert call("IDEM.CHECKPOINT", tag + "job", fence, "half") in (b"OK", True)
    assert call("IDEM.COMPLETE", tag + "job", fence, b"\x00answer", "CODE", 201) in (b"OK", True)
    assert call("IDEM.RESERVE", tag + "job")[4:] == [201, b"\x00answer"]
    try:
        call("IDEM.FAIL", tag + "job", fence)
        raise AssertionError("no error")
    except redis.ResponseError as error:
        assert str(error).startswith("CONFLICT"), error
    fields = call("IDEM.STATUS", tag + "job")
    assert dict(zip(fields[::2], fields[1::2]))[b"state"] == b"done"
    assert call("IDEM.TRANSITION", tag + "s", "new", "FROM", 0, "INIT") == [b"MOVED", None]
    assert call("IDEM.THROTTLE", tag + "r", 15, 30, 60_000) == [0, 16, 15, -1, 2000]
    assert call("IDEM.MRESERVE", 2, tag + "x", tag + "y")[0] == b"RESERVED"
    assert client.get(tag + "job").startswith(b"idem/1 state=done ")
    client.delete(key, *(tag + n for n in ("job", "s", "r", "x", "y")))


def over_tcp():
    with redis.Redis(port=PORT, client_name="py", health_check_interval=1, socket_timeout=10) as client:
        strings(client, "py:")
        native(client, "py:")
        assert client.client_getname() == "py"
        assert client.info()["redis_version"]
        assert client.ping() is True


def over_a_unix_socket():
    with redis.Redis(unix_socket_path=SOCKET, socket_timeout=10) as client:
        strings(client, "pyu:")
        native(client, "pyu:")


def by_url_with_database():
    with redis.Redis.from_url(f"redis://127.0.0.1:{PORT}/5", decode_responses=True) as client:
        client.set("py:db", "ü")
        assert client.get("py:db") == "ü"
        assert client.client_info()["db"] == 5
        client.delete("py:db")


def with_a_password():
    try:
        redis.Redis(port=PASSWORD_PORT).ping()
        raise AssertionError("no error")
    except redis.AuthenticationError:
        pass
    try:
        redis.Redis(port=PASSWORD_PORT, password="wrong").ping()
        raise AssertionError("no error")
    except (redis.AuthenticationError, redis.ResponseError) as error:  # WRONGPASS has no class in every version
        assert "WRONGPASS" in str(error) or "invalid" in str(error)
    with redis.Redis(port=PASSWORD_PORT, password=PASSWORD) as client:
        strings(client, "pw:")
    with redis.Redis(port=PASSWORD_PORT, username="default", password=PASSWORD) as client:
        native(client, "pw:")


def in_pipelines():
    with redis.Redis(port=PORT) as client:
        pipe = client.pipeline(transaction=False)
        for i in range(2000):
            pipe.set(f"py:p{i}", i)
        for i in range(2000):
            pipe.execute_command("IDEM.CONSUME", f"py:p{i}", "IFEQ", str(i))
        pipe.execute_command("IDEM.RESERVE", "py:pipe")
        replies = pipe.execute()
        assert replies[:2000] == [True] * 2000 and replies[2000:4000] == [1] * 2000
        assert replies[4000][0] == b"RESERVED"
        client.delete("py:pipe")


def in_transactions():
    with redis.Redis(port=PORT) as client:
        need(client, "MULTI")
        pipe = client.pipeline()
        pipe.set("py:m", 1).incr("py:m").execute_command("IDEM.CONSUME", "py:m", "IFEQ", "2")
        assert pipe.execute() == [True, 2, 1]


def with_the_librarys_lock():
    with redis.Redis(port=PORT) as client:
        need(client, "EVALSHA")
        lock = client.lock("py:lock", timeout=30)
        assert lock.acquire(blocking=False)
        assert client.execute_command("IDEM.RESERVE", "py:lock")[0] == b"PENDING"
        lock.extend(10)
        lock.release()
        fence = client.execute_command("IDEM.RESERVE", "py:lock")[1]
        assert not client.lock("py:lock", timeout=30).acquire(blocking=False)
        client.execute_command("IDEM.RELEASE", "py:lock", fence)


def with_asyncio():
    async def go():
        async with redis.asyncio.Redis(port=PORT) as client:
            replies = await asyncio.gather(*(client.execute_command("IDEM.RESERVE", "py:async") for _ in range(50)))
            assert sorted({r[0] for r in replies}) == [b"PENDING", b"RESERVED"]
            winners = [r for r in replies if r[0] == b"RESERVED"]
            assert len(winners) == 1
            waiting = asyncio.create_task(client.execute_command("IDEM.RESERVE", "py:async", "WAIT", 10_000))
            await asyncio.sleep(0.1)
            await client.execute_command("IDEM.COMPLETE", "py:async", winners[0][1], "answer")
            assert (await waiting)[5] == b"answer"
            await client.delete("py:async")
        await client.connection_pool.disconnect()

    asyncio.run(go())


for each in (over_tcp, over_a_unix_socket, by_url_with_database, with_a_password, in_pipelines, in_transactions,
             with_the_librarys_lock, with_asyncio):
    test(each)
print(f"{results[True]} passed, {results[False]} failed")
sys.exit(results[False] > 0)
