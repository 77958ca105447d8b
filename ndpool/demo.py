"""The command ``ndpool demo``: pools a real 4-D MRI series over space and time, prints what it did, draws a slice.

The series is the one that nibabel ships for its own tests, so that nothing is downloaded. nibabel and matplotlib are
extras: they are imported inside the functions, and one that is missing is a line of advice, never a traceback.
"""

import os
import time
import tracemalloc
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from .dispatch import resolve
from .plan import WindowPlan
from .pooling import pool
from .reductions import reduction_of

SERIES: Final = "example4d.nii.gz"
# What each axis needs is different, which is the point of an entry an axis.
KERNEL: Final = (3, 3, 3, 2)
STRIDE: Final = (2, 2, 2, 1)
PADDING: Final = (1, 1, 1, (1, 0))
MODES: Final = ("ignore", "wrap", "ignore", "ignore")
WHY: Final = (
    "axis 1 wraps: it is the phase-encoding axis (the header says so), on which an MR image is periodic",
    "axis 3 is padded on one side: a window holds a volume and the one before it",
)
SECONDS: Final = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6}
TOWARDS: Final = {"L": "left", "R": "right", "A": "front", "P": "back", "S": "top", "I": "bottom"}


class Maximum(NamedTuple):
    """A maximum: its value, its voxel and volume, and where and when that is."""

    value: int
    position: tuple[int, ...]
    millimetres: tuple[float, ...]
    seconds: float


def need(module: str) -> Any:
    """Import and return an optional `module`; one that is not installed ends the command with what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        root = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != root:
            raise  # it is there, and something of its own is not: the traceback says what
        raise SystemExit(f'ndpool demo: {root} is not installed: pip install "ndpool[nifti,plot]"') from None


def load_series() -> Any:
    """Return the series as a nibabel image."""
    nibabel = need("nibabel")
    path = Path(nibabel.__file__).parent / "tests" / "data" / SERIES
    if not path.exists():
        raise SystemExit(f"ndpool demo: this nibabel {nibabel.__version__} came without its tests: {path} is missing")
    return nibabel.load(path)


def by(sizes: Iterable[float], spec: str = "") -> str:
    """Return sizes as a text: "3 by 4 by 5"."""
    return " by ".join(format(size, spec) for size in sizes)


def seconds_per_volume(image: Any) -> float:
    """Return the time from one volume to the next."""
    unit, step = image.header.get_xyzt_units()[1], float(image.header.get_zooms()[3])
    # This header gives 2000 and calls it seconds. A scanner takes 2000 ms for a volume, never half an hour.
    return step * SECONDS["msec" if unit == "sec" and step >= 100 else unit]


def largest(values: Any, coords: tuple[Any, ...], image: Any, count: int) -> list[Maximum]:
    """Return the `count` largest maxima; one that several windows share counts once."""
    apply_affine = need("nibabel.affines").apply_affine
    columns = (axis.ravel().tolist() for axis in coords)
    distinct = dict(zip(zip(*columns, strict=True), values.ravel().tolist(), strict=True))
    top = sorted(distinct.items(), key=lambda item: (-item[1], item[0]))[:count]
    step = seconds_per_volume(image)
    return [
        Maximum(value, position, tuple(apply_affine(image.affine, position[:3]).tolist()), position[3] * step)
        for position, value in top
    ]


def measure(series: Any, plan: WindowPlan) -> tuple[Any, str]:
    """Return the result of pooling, and a text on the time and the memory that it took."""

    def timed() -> tuple[Any, float]:
        start = time.perf_counter()
        result = pool(series, plan, "max", return_indices="coords")
        return result, (time.perf_counter() - start) * 1e3

    result, first = timed()
    best = min(timed()[1] for _ in range(5))
    tracemalloc.start()
    kept, _ = timed()  # held, so that the output is not counted as freed
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = kept.values.nbytes + sum(axis.nbytes for axis in kept.indices)
    return result, (
        f"time     {best:.1f} ms, the best of 5 calls; the first call {first:.1f} ms\n"
        f"memory   {(peak - now) / 2**20:.2f} MiB at most beyond the output of {size / 2**20:.2f} MiB and the input of "
        f"{series.nbytes / 2**20:.2f} MiB\n         (Python's tracemalloc, in a call of its own)"
    )


def draw(image: Any, before: Any, pooled: Any, shown: Maximum, path: Path) -> None:
    """Write a picture of one slice before and after pooling, the maximum `shown` marked; whole, or not at all."""
    figure = need("matplotlib.figure").Figure(figsize=(11.5, 4.9), layout="constrained")
    axcodes = need("nibabel").aff2axcodes(image.affine)
    opposite = dict(zip("LRAPSI", "RLPAIS", strict=True))
    _, _, k, volume = shown.position
    # Window o is centred on voxel 2 o, so both pictures share their millimetres.
    slices = (before[:, :, k, volume], pooled.values[:, :, k // STRIDE[2], volume])
    size = f"{by(pooled.values.shape[:2])} maxima, each over {by(KERNEL[:3])} voxels and {KERNEL[3]} volumes"
    titles = (
        f"before: slice {k}, volume {volume}\n{by(before.shape[:2])} voxels",
        f"after: slice {k // STRIDE[2]}, volume {volume}\n{size}",
    )
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    sizes = [float(zoom) for zoom in image.header.get_zooms()[:2]]
    for panel, pixels, title, stride in zip(panels, slices, titles, (1, 2), strict=True):
        widths = [size * stride for size in sizes]
        edges = [side * w for n, w in zip(pixels.shape, widths, strict=True) for side in (-0.5, n - 0.5)]
        shade = panel.imshow(pixels.T, cmap="gray", origin="lower", extent=edges, vmin=0, vmax=int(before.max()))
        panel.set_facecolor("black")
        panel.set_title(title, fontsize=11)
        at = [i * size for i, size in zip(shown.position, sizes, strict=False)]
        panel.plot(*at, "o", markersize=13, markerfacecolor="none", markeredgecolor="orange", markeredgewidth=1.5)
        panel.set_xlabel("mm, {} → {}".format(*(TOWARDS[c] for c in (opposite[axcodes[0]], axcodes[0]))))
    panels[0].set_ylabel("mm, {} → {}".format(*(TOWARDS[c] for c in (opposite[axcodes[1]], axcodes[1]))))
    figure.colorbar(shade, ax=panels, label="signal, as stored", pad=0.02)
    place = ", ".join(f"{mm:.1f}" for mm in shown.millimetres)
    figure.suptitle(f"ndpool: 4-D max pooling. Circle: {shown.value} at ({place}) mm, {shown.seconds:.0f} s")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        figure.savefig(partial, format="png", dpi=130)
        partial.replace(path)
    except OSError as error:
        raise SystemExit(f"ndpool demo: cannot write {str(path)!r}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # it is not there after a success, and may never have been
            partial.unlink()


def run(output: Path) -> int:
    """Pool the series, print what was done, and write the picture to `output`.

    Parameters
    ----------
    output : Path
        The path of the picture, a PNG file.

    Returns
    -------
    int
        The exit status, 0.

    Raises
    ------
    SystemExit
        With one line for the user: an extra is not installed, or the picture cannot be written.
    """
    need("matplotlib")
    image = load_series()
    series = image.dataobj[...]  # as stored: int16, in Fortran order
    codes = image.header.get_xyzt_units()
    zooms = image.header.get_zooms()
    plan = WindowPlan.sliding(series.shape, KERNEL, stride=STRIDE, padding=PADDING, padding_mode=MODES)
    pooled, cost = measure(series, plan)
    reduction = reduction_of("max")
    engine = next(e for e in resolve(series, None).engines if e.takes(series.dtype, reduction, masked=False))

    print(f"input    {SERIES}, which ships inside nibabel {need('nibabel').__version__}")
    print(f"         shape {series.shape}: three axes of space, and time; {series.dtype}")
    every = f"{seconds_per_volume(image):g} s (the header says {zooms[3]:g} {codes[1]}: it means ms)"
    print(f"         voxels of {by(zooms[:3], '.2f')} {codes[0]}; a volume every {every}")
    print("plan     " + plan.describe().replace("\n", "\n         "))
    print(*(f"           {reason}" for reason in WHY), sep="\n")
    print(f"output   shape {pooled.values.shape}, {pooled.values.dtype}; for each maximum its coordinate on every axis")
    print("maxima   the largest five in the scanner's coordinates (right, front, top)")
    top = largest(pooled.values, pooled.indices, image, 5)
    for found in top:
        place = ", ".join(f"{mm:7.1f}" for mm in found.millimetres)
        where = f"voxel {found.position[:3]}, volume {found.position[3]}"
        print(f"         {found.value} at ({place}) mm, {found.seconds:g} s: {where}")
    print(f"engine   {engine.name}: {engine.capabilities.how}")
    print(cost)
    # The first and last slice show little of the head.
    inner = [found for found in top if 0 < found.position[2] < series.shape[2] - 1]
    draw(image, series, pooled, (inner or top)[0], output)
    print(f"picture  {output}")
    return 0
