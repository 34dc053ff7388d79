"""What the workers of task_queue.py do: each doing is one line of a file, whatever becomes of the queue's own records."""
import os
import time


def note(place, word):
    """One line, at once: lines of many processes do not mix."""
    handle = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{word}\n".encode())
    finally:
        os.close(handle)


def noted(place):
    try:
        with open(place, encoding="ascii") as lines:
            return lines.read().split()
    except FileNotFoundError:
        return []


def double(place, number):
    note(place, number)
    time.sleep(0.001 * (number % 4))
    return 2 * number


def fail_until(place, good):
    note(place, "try")
    if len(noted(place)) < good:
        raise ValueError(f"try {len(noted(place))}")
    return "good at last"


def total(place, parts):
    note(place, "total")
    return sum(len(noted(part)) for part in parts)
