"""Sliding windows over arrays of any rank: pooling over any axes of any array library, the same answer everywhere."""

from .dispatch import backends
from .indices import convert_indices
from .plan import AxisWindows, WindowPlan
from .pooling import Pooled, avg_pool, lp_pool, max_pool, min_pool, pool, sum_pool

__version__ = "0.1.0.dev0"

__all__ = [
    "AxisWindows",
    "Pooled",
    "WindowPlan",
    "avg_pool",
    "backends",
    "convert_indices",
    "lp_pool",
    "max_pool",
    "min_pool",
    "pool",
    "sum_pool",
]
