"""The shop without idemd: each stage checks, acts, and takes a note, as many shops do."""

import threading
import time
import uuid


class OldFence(Exception):
    """Never raised here: without fences nobody is refused."""


class NaiveShop:
    def __init__(self, world, strike):
        self.world, self.strike = world, strike
        self.windows, self.guard = {}, threading.Lock()

    def get(self, table, key):
        return self.world.call("get", table=table, key=key)

    def put(self, table, key, value):
        self.world.call("put", table=table, key=key, value=value)

    def act(self, kind, operation):
        return self.world.call("apply", kind=kind, operation=operation, fence=None)["id"]

    def allow(self, user):
        """A counter per second in this process's memory; the other processes have their own."""
        window = int(time.time())
        with self.guard:
            since, count = self.windows.get(user, (window, 0))
            count = count + 1 if since == window else 1
            self.windows[user] = (window, count)
        return 0 if count <= 20 else 100

    def form(self, user):
        token = uuid.uuid4().hex
        self.put("token", token, "new")
        return 200, token

    def submit(self, user, token, number):
        if self.get("token", token) != "new":
            return 410, "DUPLICATE"
        self.put("token", token, "used")
        order = self.get("order", number)
        if order:
            return 200, order
        if self.strike("order.busy", number) == "busy":
            self.put("token", token, "new")
            return 503, "the order table is busy"
        self.strike("order.before", number)
        order = self.act("order", number)
        self.strike("order.after", number)
        self.put("order", number, order)
        self.put("status", number, "created")
        self.strike("order.answer", number)
        return 200, order

    def pay(self, number):
        if self.get("status", number) is None:
            return 404, "no such order"
        charge = self.get("charge", number)
        if charge:
            return 200, charge
        self.strike("charge.before", number)
        charge = self.act("charge", number)
        self.strike("charge.after", number)
        self.put("charge", number, charge)
        return 200, charge

    def paid(self, number):
        if self.get("status", number) != "created":
            return 200, "done"
        self.put("status", number, "paid")
        self.strike("paid.between", number)
        self.act("points", number)
        self.strike("points.after", number)
        self.world.call("enqueue", topic="ship", body=number)
        return 200, "done"

    def ship(self, number):
        if self.get("status", number) == "shipped":
            return None
        if self.strike("ship.busy", number) == "busy":
            return 120
        self.act("label", number)
        self.strike("label.after", number)
        self.strike("parcel.before", number)
        self.act("parcel", number)
        self.strike("parcel.after", number)
        self.put("status", number, "shipped")
        return None

    def reconcile(self, number):
        return None
