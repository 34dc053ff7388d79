"""The shop with idemd and a resource that nobody asks: shows what a store alone cannot do.

It reserves and completes like the guarded shop, but brings no fence along, and an attempt that
takes over acts without looking whether an earlier one has acted.
"""

import guarded


class CarelessShop(guarded.GuardedShop):
    ONLAPSE = "TAKE"

    def act(self, call, kind, operation, fence, **more):
        return super().act(call, kind, operation, None, **more)

    def once(self, kind, operation, claim):
        return self.act("apply", kind, operation, claim.fence)
