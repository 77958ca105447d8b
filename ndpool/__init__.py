"""Sliding windows over arrays of any rank: pooling over any axes of any array library, the same answer everywhere."""

from .dispatch import backends
from .indices import convert_indices
from .plan import AxisWindows, WindowPlan
from .pooling import Pooled, avg_pool, lp_pool, max_pool, min_pool, pool, sum_pool
from .threads import get_num_threads, set_num_threads

__version__ = "0.1.0.dev0"

__all__ = [
    "AxisWindows",
    "Pooled",
    "WindowPlan",
    "avg_pool",
    "backends",
    "convert_indices",
    "get_num_threads",
    "lp_pool",
    "max_pool",
    "min_pool",
    "pool",
    "set_num_threads",
    "sum_pool",
]
