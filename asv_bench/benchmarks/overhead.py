"""What a call costs before any work: the plan, and a pool of next to nothing."""

import ndpool as ndp

from . import ENGINES, make


class Plan:
    """Every call makes its plan; `tables` are made only where an engine asks."""

    params = [[(64, 64), (8, 32, 256, 256), (2, 8, 64, 128, 128)]]
    param_names = ["shape"]

    def setup(self, shape):
        self.plan = ndp.WindowPlan.sliding(shape, 3, axes=(-2, -1))

    def time_sliding(self, shape):
        ndp.WindowPlan.sliding(shape, 3, axes=(-2, -1), stride=2, padding=1)

    def time_tables(self, shape):
        self.plan.tables()


class SmallCall:
    """The goal: no slower than `scipy.ndimage.maximum_filter` on an 8×8 array."""

    params = [ENGINES]
    param_names = ["engine"]

    def setup(self, engine):
        self.case = make(engine, (8, 8))
        self.time_max_pool(engine)

    def time_max_pool(self, engine):
        ndp.max_pool(self.case.x, 3, stride=1, padding=1, backend=engine)
        self.case.wait()


class SmallCallPeer:
    def setup(self):
        try:
            from scipy import ndimage
        except ImportError as error:
            raise NotImplementedError("scipy is not installed") from error
        self.maximum_filter = ndimage.maximum_filter
        self.x = make("generic", (8, 8)).x
        self.time_maximum_filter()

    def time_maximum_filter(self):
        self.maximum_filter(self.x, 3)
