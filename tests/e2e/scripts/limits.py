"""Scripts that take too long or too much, in a real process: they can be killed, others are told BUSY, memory is given back."""
import argparse
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from lib.resp import Closed, Error  # noqa: E402
from lib.server import Server, eventually, find_binary  # noqa: E402

ENDLESS = "while true do end"
ENDLESS_CALLS = "while true do redis.call('ping') end"
ENDLESS_CAUGHT = "local f = function() while true do redis.call('ping') end end while true do pcall(f) end"
ENDLESS_WRITER = "redis.call('set', KEYS[1], 'half') while true do end"
BOMBS = {
    "tables": "local t = {} while true do t[#t + 1] = {} end",
    "strings": "local s = 'x' while true do s = s .. s end",
    "one string": "return string.rep('x', 1000000000)",
    "many strings": "local t = {} for i = 1, 1e9 do t[i] = 'value:' .. i end",
    "arguments": "local t = {} for i = 1, 1e7 do t[i] = redis.call('echo', string.rep('x', 1000) .. i) end",
    "recursion": "local function f() return f() + 1 end return f()",
    "caught": "for i = 1, 100 do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end return 1",
}


class Suite:
    def __init__(self, binary):
        self.binary = binary
        self.passed = self.failed = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED  {what}")

    def server(self, **settings):
        return Server(self.binary, busy_reply_threshold=20, save="", **settings)

    def begin(self, server, *words):
        """A connection whose script runs already; and what its reply will be, in a list."""
        client = server.connect(timeout=60)
        client.send(*words)
        with server.connect() as other:
            eventually(lambda: isinstance(other.call("PING"), Error), "the script is busy", timeout=20)
        return client

    def kill(self, server, command="SCRIPT"):
        with server.connect(timeout=20) as other:
            return other.call(command, "KILL")

    def calm(self, server):
        with server.connect(timeout=20) as other:
            eventually(lambda: bytes(other.call("PING")) == b"PONG", "the server is calm again", timeout=20)

    # --- time
    def killed(self, threads):
        for script in (ENDLESS, ENDLESS_CALLS, ENDLESS_CAUGHT):
            with self.server(io_threads=threads) as server:
                client = self.begin(server, "EVAL", script, "0")
                self.check(bytes(self.kill(server)) == b"OK", f"{script}: SCRIPT KILL")
                reply = client.read()
                self.check(isinstance(reply, Error) and b"Script killed by user" in reply, f"{script}: {reply!r}")
                self.calm(server)
                self.check(bytes(client.call("ECHO", "still")) == b"still", f"{script}: the connection goes on")

    def allowed_meanwhile(self, threads):
        with self.server(io_threads=threads) as server, server.connect(timeout=20) as other, server.connect() as watcher:
            watcher.call("SET", "k", "v")
            watcher.call("WATCH", "k")
            client = self.begin(server, "EVAL", ENDLESS, "1", "k")
            for words in (["GET", "k"], ["SET", "k", "w"], ["SCRIPT", "LOAD", "return 1"], ["EVAL", "return 1", "0"],
                          ["INFO"], ["FUNCTION", "KILL"], ["SHUTDOWN"], ["FUNCTION", "STATS"]):
                reply = other.call(*words)
                self.check(isinstance(reply, Error) and reply.code == "BUSY", f"{words}: {reply!r}")
            for words in (["MULTI"], ["DISCARD"], ["HELLO", "2"], ["RESET"]):
                self.check(not isinstance(other.call(*words), Error), f"{words} while busy")
            # What gives up watches takes locks; it is done when the script is over.
            self.check(bytes(watcher.call("UNWATCH")) == b"OK", "UNWATCH while busy")
            gone = server.connect()
            gone.close()
            self.check(bytes(self.kill(server)) == b"OK", "SCRIPT KILL")
            client.read()
            self.calm(server)
            other.call("SET", "k", "w")
            watcher.call("MULTI")
            watcher.call("GET", "k")
            self.check([bytes(r) for r in watcher.call("EXEC")] == [b"w"], "the watch was given up")

    def waiting_for_a_lock(self, threads):
        """Commands that waited for the script's locks before it was busy: their connections' threads serve others."""
        with self.server(io_threads=threads) as server:
            with server.connect() as client:
                client.call("SET", "k", "v")
            runner = server.connect(timeout=60)
            waiting = [server.connect(timeout=60) for _ in range(8)]
            runner.send("EVAL", "redis.call('get', 'anything') " + ENDLESS, "0")
            for client in waiting:
                client.send("SET", "k", "later")
            self.check(bytes(self.kill_when_busy(server)) == b"OK", "SCRIPT KILL while others wait for locks")
            runner.read()
            replies = [client.read() for client in waiting]
            fine = all(bytes(r) == b"OK" or (isinstance(r, Error) and r.code == "BUSY") for r in replies)
            self.check(fine, f"who waited for a lock: {replies}")
            self.calm(server)

    def kill_when_busy(self, server):
        with server.connect(timeout=30) as other:
            reply = other.call("SCRIPT", "KILL")
            while isinstance(reply, Error) and reply.code == "NOTBUSY":
                time.sleep(0.005)
                reply = other.call("SCRIPT", "KILL")
            return reply

    def writers_are_not_killed(self):
        with self.server() as server:
            client = self.begin(server, "EVAL", ENDLESS_WRITER, "1", "k")
            reply = self.kill(server)
            self.check(isinstance(reply, Error) and reply.code == "UNKILLABLE", f"a script that wrote: {reply!r}")
            with server.connect() as other:
                try:
                    other.send("SHUTDOWN", "NOSAVE")
                    other.read()
                except (Closed, OSError):
                    pass
            server.process.wait(20)
            self.check(server.process.returncode == 0, f"SHUTDOWN NOSAVE: {server.process.returncode}")
            client.close()
        # Half a script is nothing at all, also in the log.
        with self.server(appendonly="yes") as server:
            with server.connect() as other:
                other.call("SET", "before", "1")
            self.begin(server, "EVAL", ENDLESS_WRITER, "1", "k")
            server.kill()
            again = Server(self.binary, save="")
            again.directory, kept = server.directory, again.directory
            try:
                again.start()
                with again.connect() as other:
                    self.check(bytes(other.call("GET", "before")) == b"1", "what was before is there")
                    self.check(other.call("EXISTS", "k") == 0, "half a script is not in the log")
            finally:
                again.stop()
                again.directory = kept

    def functions(self):
        with self.server() as server, server.connect() as other:
            other.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() while true do end end)")
            client = self.begin(server, "FCALL", "f", "0")
            reply = self.kill(server)
            self.check(isinstance(reply, Error) and reply.code == "BUSY", f"SCRIPT KILL of a function: {reply!r}")
            stats = other.call("FUNCTION", "STATS")
            self.check(bytes(stats[1][1]) == b"f", f"FUNCTION STATS: {stats!r}")
            self.check(bytes(self.kill(server, "FUNCTION")) == b"OK", "FUNCTION KILL")
            self.check(isinstance(client.read(), Error), "the function ended")
            self.calm(server)

    # --- memory
    def bombs(self):
        with self.server(script_max_memory="33554432", io_threads=2) as server, server.connect(timeout=120) as client:
            server.connect().close()
            client.call("EVAL", "return 1", "0")
            before = server.rss_bytes()
            for name, script in BOMBS.items():
                reply = client.call("EVAL", script, "0")
                self.check(isinstance(reply, Error) or name == "caught", f"{name}: {reply!r}")
                self.check(client.call("EVAL", "local t = {} for i = 1, 1000 do t[i] = i end return #t", "0") == 1000,
                           f"{name}: the next script runs")
            grown = server.rss_bytes() - before
            self.check(grown < 200 << 20, f"{grown >> 20} MiB more after the bombs")

    # --- together
    def at_the_same_time(self):
        """Scripts over declared keys run beside each other; each of them is one step for all the others."""
        with self.server(io_threads=4) as server:
            script = "local n = tonumber(redis.call('get', KEYS[1]) or '0') redis.call('set', KEYS[1], n + 1) return n + 1"
            any_key = "for i = 1, 4 do redis.call('incr', 'other:' .. i) end return redis.call('mget', 'other:1', 'other:4')"
            torn = []

            def work(number):
                with server.connect(timeout=60) as client:
                    for i in range(300):
                        client.call("EVAL", script, "1", f"counter:{(number + i) % 5}")
                        if i % 10 == 0:
                            first, last = client.call("EVAL", any_key, "0")
                            if bytes(first) != bytes(last):
                                torn.append((first, last))

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with server.connect() as client:
                total = sum(int(bytes(client.call("GET", f"counter:{i}"))) for i in range(5))
                self.check(total == 2400, f"counted {total} of 2400")
                self.check(bytes(client.call("GET", "other:2")) == b"240", "the other counters")
            self.check(not torn, f"torn: {torn[:3]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default=None)
    suite = Suite(find_binary(parser.parse_args().build))
    for threads in (1, 3):
        suite.killed(threads)
        suite.allowed_meanwhile(threads)
        suite.waiting_for_a_lock(threads)
    suite.writers_are_not_killed()
    suite.functions()
    suite.bombs()
    suite.at_the_same_time()
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed or not suite.passed else 0


if __name__ == "__main__":
    sys.exit(main())
