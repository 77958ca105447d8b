"""Peak memory of the process. `Baseline` holds the input and pools nothing: what is above it is ours."""

import ndpool as ndp

from . import ENGINES, make

SHAPE = (4096, 4096)


class _Held:
    params = [ENGINES]
    param_names = ["engine"]

    def setup(self, engine):
        self.case = make(engine, SHAPE)
        # The same warm-up as below, so that a compiler's memory is in both.
        ndp.max_pool(make(engine, (8, 8)).x, 3, return_indices=True, backend=engine)


class Baseline(_Held):
    def peakmem_nothing(self, engine):
        pass


class Pool(_Held):
    def peakmem_max(self, engine):
        ndp.max_pool(self.case.x, 3, stride=1, backend=engine)

    def peakmem_max_long_window(self, engine):
        ndp.max_pool(self.case.x, 31, stride=1, backend=engine)

    def peakmem_max_with_indices(self, engine):
        ndp.max_pool(self.case.x, 3, stride=1, return_indices=True, backend=engine)
