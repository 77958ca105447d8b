"""Pooling by shape, window and engine, beside the roof: one copy of the input and the output."""

import math

import numpy as np

import ndpool as ndp

from . import ENGINES, make

# shape, kernel, stride
CASES = {
    "8x32x256x256 k2 s2": ((8, 32, 256, 256), (2, 2), 2),
    "8x32x256x256 k3 s1": ((8, 32, 256, 256), (3, 3), 1),
    "2x8x64x128x128 k3 s1": ((2, 8, 64, 128, 128), (3, 3, 3), 1),
    "4096x4096 k31 s1": ((4096, 4096), (31, 31), 1),
    "8x8x32x32x32 k2 s1": ((8, 8, 32, 32, 32), (2, 2, 2, 2), 1),
}


class Pool:
    params = [list(CASES), ENGINES]
    param_names = ["case", "engine"]
    timeout = 300

    def setup(self, case, engine):
        shape, self.kernel, self.stride = CASES[case]
        self.case = make(engine, shape)
        # Compiles, and makes the plan, the threads and the buffers.
        self.time_max(case, engine)

    def time_max(self, case, engine):
        ndp.max_pool(self.case.x, self.kernel, stride=self.stride, backend=engine)
        self.case.wait()

    def time_avg(self, case, engine):
        ndp.avg_pool(self.case.x, self.kernel, stride=self.stride, backend=engine)
        self.case.wait()

    def time_max_with_indices(self, case, engine):
        ndp.max_pool(self.case.x, self.kernel, stride=self.stride, return_indices=True, backend=engine)
        self.case.wait()


class Roof:
    params = [list(CASES)]
    param_names = ["case"]

    def setup(self, case):
        shape, kernel, stride = CASES[case]
        plan = ndp.WindowPlan.sliding(shape, kernel, axes=tuple(range(-len(kernel), 0)), stride=stride)
        self.source = np.ones(math.prod(shape) + math.prod(plan.output_shape), "float32")
        self.target = np.ones_like(self.source)
        self.time_copy(case)

    def time_copy(self, case):
        np.copyto(self.target, self.source)
