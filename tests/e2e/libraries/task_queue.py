"""RQ with workers in processes: every task is done once, retries and dependencies keep their word, one scheduler schedules.

usage: task_queue.py PORT
       task_queue.py PORT worker KIND QUEUE   (what it starts itself)
"""
import os
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone

import redis
from rq import Queue, Retry, SimpleWorker, Worker
from rq.job import JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.scheduler import RQScheduler

import tasks
from checks import broken, finish, kept, once_each, test, together, until

PORT = int(sys.argv[1])
KINDS = {"simple": SimpleWorker, "forking": Worker}  # the tasks in the worker itself, or each in a process of its own


def connect():
    return redis.Redis(port=PORT)


def worker(kind, name):
    client = connect()
    KINDS[kind]([Queue(name, connection=client)], connection=client).work(logging_level="CRITICAL")


class Workers:
    """Worker processes for a queue; asked to end with the block, which they do after the task at hand."""

    def __init__(self, name, *kinds):
        self.name, self.kinds, self.processes = name, kinds, []

    def __enter__(self):
        for kind in self.kinds:
            self.processes.append(subprocess.Popen([sys.executable, __file__, str(PORT), "worker", kind, self.name],
                                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        queue = Queue(self.name, connection=connect())

        def listening():  # before that a signal to end would end them without their farewell
            return sum(each.get_state() in ("idle", "busy") for each in Worker.all(queue=queue)) == len(self.kinds)

        try:
            until("the workers listen", listening)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def place(name):
    return os.path.join(directory, name)


def finished(jobs):
    def look():
        return all(job.get_status() == JobStatus.FINISHED for job in jobs)
    until("every task is done", look)


def every_task_once():
    queue = Queue("many", connection=connect())
    with Workers("many", "simple", "simple", "forking"):
        # From several threads while the workers run, each over a connection of its own.
        made = together(4, lambda part: [Queue("many", connection=connect()).enqueue(tasks.double, place("many"), number)
                                         for number in range(part * 40, part * 40 + 40)])
        jobs = [job for part in made for job in part]
        finished(jobs)
        assert [job.return_value() for job in jobs] == [2 * number for number in range(160)]
    kept(once_each([str(number) for number in range(160)], tasks.noted(place("many"))))
    assert len(queue) == 0
    assert FinishedJobRegistry(queue=queue).count == 160
    assert StartedJobRegistry(queue=queue).count == 0 and FailedJobRegistry(queue=queue).count == 0
    assert Worker.count(connection=queue.connection) == 0, "a worker that ended is still on the list"


def the_check_sees_wrong_counts():
    for numbers in ((1, 2, 2), (1,), (1, 2, 3)):
        name = place("wrong" + "-".join(map(str, numbers)))
        for number in numbers:
            tasks.double(name, number)
        broken(once_each(["1", "2"], tasks.noted(name)))


def retries_and_dependencies():
    queue = Queue("order", connection=connect())
    with Workers("order", "simple", "simple"):
        good = queue.enqueue(tasks.fail_until, place("retried"), 3, retry=Retry(max=5))
        bad = queue.enqueue(tasks.fail_until, place("hopeless"), 99, retry=Retry(max=2))
        parts = [queue.enqueue(tasks.double, place(f"part{number}"), number) for number in range(12)]
        last = queue.enqueue(tasks.total, place("total"), [place(f"part{number}") for number in range(12)], depends_on=parts)
        finished([good, last])
        until("the hopeless one is given up", lambda: bad.get_status() == JobStatus.FAILED
              and len(tasks.noted(place("hopeless"))) == 3)
    assert good.return_value() == "good at last" and len(tasks.noted(place("retried"))) == 3
    assert len(tasks.noted(place("hopeless"))) == 3
    assert FailedJobRegistry(queue=queue).get_job_ids() == [bad.id]
    assert last.return_value() == 12, "it ran before a task that it depends on"
    assert tasks.noted(place("total")) == ["total"]


def one_scheduler_of_many():
    """Of many who would schedule a queue one has the lock; what is due is put into the queue once, the rest stays."""
    queue = Queue("due", connection=connect())
    past = datetime.now(timezone.utc) - timedelta(seconds=5)
    due = [queue.enqueue_at(past, tasks.double, place("due"), number) for number in range(30)]
    later = queue.enqueue_in(timedelta(hours=1), tasks.double, place("due"), 99)
    schedulers = [RQScheduler([queue], connection=connect()) for _ in range(12)]
    locked = together(12, lambda number: schedulers[number].acquire_locks())
    winners = [scheduler for scheduler, names in zip(schedulers, locked) if names]
    assert len(winners) == 1, locked
    winners[0].enqueue_scheduled_jobs()
    kept(once_each([job.id for job in due], queue.job_ids))
    with Workers("due", "simple", "simple"):
        finished(due)
    kept(once_each([str(number) for number in range(30)], tasks.noted(place("due"))))
    assert later.get_status() == JobStatus.SCHEDULED
    winners[0].release_locks()
    assert schedulers[3].acquire_locks() == {"due"}
    schedulers[3].release_locks()


def asked_by_name_and_taken_back():
    """A task that is cancelled while it waits is never done."""
    queue = Queue("cancel", connection=connect())
    jobs = [queue.enqueue(tasks.double, place("cancel"), number, job_id=f"cancel-{number}") for number in range(40)]
    together(20, lambda number: jobs[2 * number].cancel())
    with Workers("cancel", "simple", "simple"):
        finished(jobs[1::2])
    kept(once_each([str(number) for number in range(1, 40, 2)], tasks.noted(place("cancel"))))
    assert {job.get_status() for job in jobs[::2]} == {JobStatus.CANCELED}


if sys.argv[2:3] == ["worker"]:
    worker(*sys.argv[3:5])
else:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the workers are ended on the way out
    with tempfile.TemporaryDirectory(prefix="idemd-tasks-") as directory:
        for each in (every_task_once, the_check_sees_wrong_counts, retries_and_dependencies, one_scheduler_of_many,
                     asked_by_name_and_taken_back):
            test(each.__name__, each)
    finish()
