"""Fixtures and profiles that all tests share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from .libraries import Library

_COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", **_COMMON)
settings.register_profile("ci", derandomize=True, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(params=[library.param for library in Library])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    """Every array library in turn, the strictest and a read-only one among them."""
    with request.param.context():
        yield request.param
