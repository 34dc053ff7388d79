"""What the Python programs of this suite share: named tests, patience, and the checks of the promises that libraries make.

A check returns complaints, one sentence each; an empty list means that the promise was kept. So that no check is blind,
every program also runs its checks on something that breaks the promise, and expects a complaint.
"""
import sys
import threading
import time
import traceback
from collections import Counter

PATIENCE_S = 200  # only for what would otherwise never end; nothing is slow enough to meet it on a busy machine
FOR_LONG_MS = 300_000  # longer than any test is awaited: such a lock is only free when it is released
CLOCKS_S = 0.02  # server and client read different clocks, both cut to whole milliseconds

results = Counter()


def test(name, body, *arguments):
    try:
        body(*arguments)
        results["passed"] += 1
    except Exception:  # noqa: BLE001 a test that breaks has failed, and the others go on
        results["failed"] += 1
        print(f"FAILED  {name}")
        traceback.print_exc(file=sys.stdout)


def finish():
    print(f"{results['passed']} passed, {results['failed']} failed")
    sys.exit(results["failed"] > 0)


def kept(complaints):
    assert not complaints, complaints[:10]


def broken(complaints):
    assert complaints, "the check did not notice"


def until(what, condition):
    end = time.monotonic() + PATIENCE_S / 2
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.005)


def together(count, body):
    """body(0) … body(count-1) on threads that start at one moment; their results in order, the first error raised."""
    start = threading.Barrier(count)
    outcomes = [None] * count
    errors = []

    def run(number):
        try:
            start.wait(PATIENCE_S)
            outcomes[number] = body(number)
        except BaseException as error:  # noqa: BLE001 it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), f"not done in {PATIENCE_S} s"
    return outcomes


def exclusion(contenders, rounds, hold):
    """Nobody is inside together with another, no addition is lost: hold(contender) is a context to be inside of."""
    complaints = []
    state = {"inside": 0, "total": 0}
    gauge = threading.Lock()  # of the numbers alone; it is never held while somebody works

    def work(contender):
        for _ in range(rounds):
            with hold(contender):
                with gauge:
                    state["inside"] += 1
                    if state["inside"] != 1:
                        complaints.append(f"{state['inside']} are inside")
                seen = state["total"]
                time.sleep(0.001)
                state["total"] = seen + 1
                with gauge:
                    state["inside"] -= 1

    together(contenders, work)
    if state["total"] != contenders * rounds:
        complaints.append(f"{state['total']} of {contenders * rounds} additions were kept")
    return complaints


def once_each(asked, done):
    """Everything that was asked for was done, and done once."""
    times = Counter(done)
    complaints = [f"{each} was done {times[each]} times" for each in asked if times[each] != 1]
    return complaints + [f"{each} was done, and nobody asked for it" for each in times if each not in set(asked)]
