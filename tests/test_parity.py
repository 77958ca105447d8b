"""Parity with peers on random arguments, where they can express the case and agree with the definitions."""

import math

import numpy as np
import pytest

import ndpool as ndp

SEEDS = range(12)


def draw(seed: int, *salt: int) -> np.random.Generator:
    return np.random.default_rng([seed, *salt])


@pytest.fixture
def functional():
    torch = pytest.importorskip("torch")
    return torch.nn.functional


def tensor(x: np.ndarray):
    return pytest.importorskip("torch").from_numpy(x.copy())


def torch_arguments(rng: np.random.Generator, ndim: int, *, dilated: bool) -> tuple[tuple, dict, dict]:
    """A shape, and the same arguments as torch and as ndpool take them."""
    k = [int(v) for v in rng.integers(1, 5, ndim)]
    s = [int(v) for v in rng.integers(1, 4, ndim)]
    d = [int(v) for v in rng.integers(1, 3, ndim)] if dilated else [1] * ndim
    pad = [int(rng.integers(0, n // 2 + 1)) for n in k]
    shape = (2, 3, *(int(rng.integers(dilation * (n - 1) + 1, 12)) for n, dilation in zip(k, d, strict=True)))
    theirs = {"kernel_size": k, "stride": s, "padding": pad, "ceil_mode": bool(rng.integers(2))}
    ours = {**theirs, "axes": tuple(range(2, 2 + ndim))}
    return shape, (theirs | {"dilation": d} if dilated else theirs), (ours | {"dilation": d} if dilated else ours)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_max_pool(functional, ndim: int, seed: int, dtype: str) -> None:
    rng = draw(seed, ndim)
    shape, theirs, ours = torch_arguments(rng, ndim, dilated=True)
    x = rng.integers(-4, 5, shape).astype(dtype)  # ties
    values, indices = getattr(functional, f"max_pool{ndim}d")(tensor(x), **theirs, return_indices=True)
    got = ndp.max_pool(x, **ours, return_indices="plane")
    np.testing.assert_array_equal(got.values, values.numpy(), strict=True)
    np.testing.assert_array_equal(got.indices, indices.numpy(), strict=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("count_pad", [True, False])
def test_torch_avg_pool(functional, ndim: int, seed: int, count_pad: bool) -> None:
    rng = draw(seed, ndim, count_pad)
    shape, theirs, ours = torch_arguments(rng, ndim, dilated=False)
    x = rng.standard_normal(shape)
    divisor = int(rng.integers(1, 9)) if ndim > 1 and rng.integers(2) else None
    more = {} if ndim == 1 else {"divisor_override": divisor}
    want = getattr(functional, f"avg_pool{ndim}d")(tensor(x), **theirs, count_include_pad=count_pad, **more)
    got = ndp.avg_pool(x, **ours, padding_mode="constant" if count_pad else "ignore", divisor=divisor)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-12, atol=1e-12, strict=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_torch_lp_pool(functional, ndim: int, seed: int, p: float) -> None:
    """Positive data and no `ceil_mode`: torch takes no magnitude for odd powers, and rescales partial windows."""
    rng = draw(seed, ndim)
    shape, theirs, ours = torch_arguments(rng, ndim, dilated=False)
    x = rng.uniform(0.1, 3, shape)
    same = {"kernel_size": theirs["kernel_size"], "stride": theirs["stride"]}
    if ndim == 1:
        same = {name: value[0] for name, value in same.items()}
    want = getattr(functional, f"lp_pool{ndim}d")(tensor(x), p, **same)
    got = ndp.lp_pool(x, p, ours["kernel_size"], stride=ours["stride"], axes=ours["axes"])
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-12, strict=True)


MODES = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("theirs", MODES)
@pytest.mark.parametrize("dtype", ["float64", "int16", "uint8"])
def test_scipy_filters(seed: int, theirs: str, dtype: str) -> None:
    """SciPy's window is centred, the extra element of an even one before."""
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = draw(seed)
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(3, 8, ndim))
    size = tuple(int(rng.integers(1, n + 1)) for n in shape)
    x = rng.integers(0, 20, shape).astype(dtype)
    fill = int(rng.integers(0, 20))
    arguments = {
        "stride": 1,
        "padding": tuple((k // 2, k - 1 - k // 2) for k in size),
        "padding_mode": MODES[theirs],
        "fill_value": fill,
    }
    for ours, filtered in [(ndp.max_pool, ndimage.maximum_filter), (ndp.min_pool, ndimage.minimum_filter)]:
        want = filtered(x, size, mode=theirs, cval=fill)
        np.testing.assert_array_equal(ours(x, size, **arguments), want, strict=True)
    want = ndimage.uniform_filter(x.astype(np.float64), size, mode=theirs, cval=fill)
    np.testing.assert_allclose(ndp.avg_pool(x, size, **arguments), want, rtol=1e-12, atol=1e-12, strict=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_skimage_block_reduce(seed: int) -> None:
    measure = pytest.importorskip("skimage.measure")
    rng = draw(seed)
    ndim = int(rng.integers(1, 5))
    block = tuple(int(k) for k in rng.integers(1, 4, ndim))
    whole = tuple(k * int(rng.integers(1, 4)) for k in block)
    x = rng.integers(-50, 50, whole).astype(np.float64)
    for ours, function in [(ndp.max_pool, np.max), (ndp.min_pool, np.min), (ndp.sum_pool, np.sum)]:
        np.testing.assert_array_equal(ours(x, block), measure.block_reduce(x, block, function), strict=True)
    np.testing.assert_allclose(ndp.avg_pool(x, block), measure.block_reduce(x, block, np.mean), rtol=1e-13)
    # Partial blocks: skimage fills them up with zeros, which only a sum doesn't notice.
    x = rng.integers(-50, 50, tuple(n + int(rng.integers(0, k)) for n, k in zip(whole, block, strict=True)))
    want = measure.block_reduce(x, block, np.sum)
    np.testing.assert_array_equal(ndp.sum_pool(x, block, ceil_mode=True), want, strict=True)


def test_the_peers_differ_where_they_are_said_to() -> None:
    """What keeps a case out of the above: should a peer mend it, the exception here may go."""
    torch = pytest.importorskip("torch")
    negative = torch.tensor([[[-1.0, 1.0]]])
    assert math.isclose(float(torch.nn.functional.lp_pool1d(negative, 3, 2)), 0, abs_tol=1e-6)
    assert math.isclose(float(ndp.lp_pool(np.array([-1.0, 1.0]), 3, 2)[0]), 2 ** (1 / 3))
