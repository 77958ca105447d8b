"""A tile as instructions: what is read, combined and written, in blocks of evenly spaced rows.

An instruction works on a block of `OUTER` rows of `INNER` elements. For each target element it combines `CELLS` source
elements, `PITCH` apart. It reads the array or scratch memory, and writes scratch memory or the results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from ndpool.padding import FILL, IGNORED
from ndpool.plan import Ints

from .spans import Span

# Columns of an instruction.
(
    KIND, READS, WRITES, CELLS, PITCH, OUTER, INNER, SOURCE, SOURCE_OUTER, SOURCE_INNER, TARGET, TARGET_OUTER,
    TARGET_INNER, PLACE, PLACE_OUTER, PLACE_INNER, TOOK, TOOK_OUTER, TOOK_INNER, COLUMNS,
) = range(20)  # fmt: skip
# Kinds of instructions: elements into scratch memory, a constant, windows, windows onto what is there, results.
LOAD, NEUTRAL, FILLED, FOLD, ONTO, STORE = range(6)
# The most cells that are combined one after another.
MOST = 8


class Dim(NamedTuple):
    """An axis of a block: its extent and the steps from element to element; where in the tables a count for each is."""

    extent: int
    source: int
    target: int
    place: int = 0
    table: int = -1


class Part(NamedTuple):
    """A part of an axis, as all tiles that differ by a shift alone have it: its windows and what they read."""

    span: Span
    taking: int | Ints


class Axis(NamedTuple):
    """How far one step on an axis goes in the array's memory, in the results' and in the positions' numbering."""

    array: int
    result: int
    place: int


def packed(extents: Sequence[int]) -> list[int]:
    """Return the steps of a block in C order."""
    steps, size = [], 1
    for extent in reversed(extents):
        steps.append(size)
        size *= extent
    return steps[::-1]


@dataclass
class Tile:
    """The instructions for a tile in the making.

    Attributes
    ----------
    room : int
        Elements of scratch memory that a pass may fill; there are four such rooms: two between passes, two within one.
    additive : bool
        Whether an element that counts twice would show.
    tables : list of array
        Where counts for each window are kept, one after another.
    code : list of list of int
        The instructions.
    """

    room: int
    additive: bool
    tables: list[Ints]
    code: list[list[int]] = field(default_factory=list)

    def emit(
        self, kind: int, dims: Iterable[Dim], source: int, target: int, *, reads: bool = False, writes: bool = False,
        cells: int = 1, pitch: int = 0, place: int = 0, took: int = 1,
    ) -> None:  # fmt: skip
        """Add the instructions for a block: each has two of its axes, one for each element of the others."""
        merged: list[Dim] = []
        for dim in dims:
            if dim.extent == 0:
                return
            if dim.extent == 1 and dim.table < 0:
                continue
            last = merged[-1] if merged else None
            if last and last.table == dim.table == -1 and last[1:4] == tuple(step * dim.extent for step in dim[1:4]):
                merged[-1] = dim._replace(extent=dim.extent * last.extent)
            else:
                merged.append(dim)
        # Rows are best long, and rows that follow each other near.
        long = len(merged) - 1
        if merged and merged[long].extent < 8:
            long = max(range(len(merged)), key=lambda i: merged[i].extent)
        inner = merged.pop(long) if merged else Dim(1, 1, 1)
        outer = merged.pop() if merged else Dim(1, 0, 0)
        for at in product(*(range(dim.extent) for dim in merged)):
            row = [kind, reads, writes, cells, pitch, outer.extent, inner.extent, source, outer.source, inner.source]
            row += [target, outer.target, inner.target, place, outer.place, inner.place, took, outer.table, inner.table]
            for k, dim in zip(at, merged, strict=True):
                row[SOURCE] += k * dim.source
                row[TARGET] += k * dim.target
                row[PLACE] += k * dim.place
                row[TOOK] *= int(self._count(dim.table, k))
            self.code.append(row)

    def _count(self, table: int, k: int) -> int:
        for kept in self.tables if table >= 0 else ():
            if table < len(kept):
                return int(kept[table + k])
            table -= len(kept)
        return 1

    def windows(
        self, dims: list[Dim], source: int, target: int, cells: int, pitch: int, *, reads: bool, writes: bool
    ) -> None:
        """Combine the cells of each window: in order, and many of them by a tree."""
        near, other = 2 * self.room, 3 * self.room
        extents = [dim.extent for dim in dims]
        size = math.prod(extents)
        while cells > MOST:
            level = [dim._replace(target=step) for dim, step in zip(dims, packed(extents), strict=True)]
            full, rest = divmod(cells, MOST)
            each = Dim(full, MOST * pitch, size)
            self.emit(FOLD, [each, *level], source, near, reads=reads, cells=MOST, pitch=pitch)
            self.emit(
                FOLD, level if rest else [Dim(0, 0, 0)], source + full * each.source, near + full * size, reads=reads,
                cells=rest, pitch=pitch,
            )  # fmt: skip
            dims = [dim._replace(source=step) for dim, step in zip(dims, packed(extents), strict=True)]
            cells, source, pitch, reads = full + (rest > 0), near, size, False
            near, other = other, near
        self.emit(FOLD, dims, source, target, reads=reads, writes=writes, cells=cells, pitch=pitch)

    def doubling(
        self, dims: list[Dim], j: int, span: Span, source: int, target: int, unit: int, *, reads: bool, writes: bool
    ) -> None:
        """Combine long windows that overlap: of spans of cells that grow, the first and the last make a window.

        Where a cell must not count twice, spans double, and those of the kernel's binary digits make a window.
        """
        near, other, kernel = 2 * self.room, 3 * self.room, span.kernel
        whole = [span.length if i == j else dim.extent for i, dim in enumerate(dims)]
        steps = packed(whole)
        wide, taken, left = 1, 0, span.length
        while True:
            # A window is read where the first of its spans is.
            dims[j] = dims[j]._replace(source=span.stride * unit)
            grows = 2 * wide <= kernel
            apart = span.dilation * unit
            if self.additive:
                if kernel & wide:
                    kind = ONTO if taken else FOLD
                    self.emit(kind, dims, source + taken * apart, target, reads=reads, writes=writes)
                    taken += wide
            elif not grows:
                cells = 1 if wide == kernel else 2
                pitch = (kernel - wide) * apart
                self.emit(FOLD, dims, source, target, reads=reads, writes=writes, cells=cells, pitch=pitch)
            if not grows:
                return
            factor = 3 if 3 * wide <= kernel and not self.additive else 2
            left -= (factor - 1) * wide * span.dilation
            level = [dim._replace(target=step) for dim, step in zip(dims, steps, strict=True)]
            level[j] = Dim(left, unit, steps[j])
            self.emit(FOLD, level, source, near, reads=reads, cells=factor, pitch=wide * apart)
            wide, source, unit, reads = wide * factor, near, steps[j], False
            near, other = other, near
            dims = [dim._replace(source=step) for dim, step in zip(dims, steps, strict=True)]

    def sweep(
        self, dims: list[Dim], j: int, span: Span, source: int, target: int, unit: int, *, reads: bool, writes: bool
    ) -> None:
        """Reduce axis `j`, on which positions are `unit` apart; `dims` has the windows and the steps of the others."""
        if span.starts is not None and span.lengths is not None:
            step = dims[j].target
            for members, apart, length in _regular(span.starts, span.lengths):
                dims[j] = Dim(len(members), apart * unit, members.step * step)
                at, goal = source + int(span.starts[members.start]) * unit, target + members.start * step
                self.windows(dims, at, goal, length, unit, reads=reads, writes=writes)
            return
        dims[j] = dims[j]._replace(extent=span.count, source=span.stride * unit)
        if span.kernel > MOST and span.kernel * span.dilation > span.stride and span.count > 1:
            self.doubling(dims, j, span, source, target, unit, reads=reads, writes=writes)
        else:
            self.windows(dims, source, target, span.kernel, span.dilation * unit, reads=reads, writes=writes)


def _regular(starts: Ints, lengths: Ints) -> Iterator[tuple[range, int, int]]:
    """Yield the windows that have some cells, evenly spaced ones together, how far apart they are, and their length."""
    groups: dict[int, list[int]] = {}
    for o, length in enumerate(lengths.tolist()):
        groups.setdefault(length, []).append(o)
    groups.pop(0, None)
    for length, members in groups.items():
        places, at = starts[members].tolist(), 0
        while at < len(members):
            end, apart, stride = at + 1, 1, 1
            if end < len(members):
                apart, stride = members[end] - members[at], places[end] - places[at]
            while end < len(members) and (members[end] - members[end - 1], places[end] - places[end - 1]) == (
                apart,
                stride,
            ):
                end += 1
            yield range(members[at], members[end - 1] + 1, apart), stride, length
            at = end


def _reads(
    tile: Tile,
    parts: Sequence[Part],
    axes: Sequence[Axis],
    steps: Sequence[int],
    j: int | None,
    target: int,
    *,
    writes: bool,
) -> None:
    """Read a tile: into scratch memory as it is or, where `j` is an axis, reduced on that one."""
    for runs in product(*(part.span.runs for part in parts)):
        dims = [
            Dim(run.end - run.begin, run.step * axis.array, step, run.step * axis.place)
            for run, axis, step in zip(runs, axes, steps, strict=True)
        ]
        sources = [run.source for run in runs]
        goal = target + sum(run.begin * step for i, (run, step) in enumerate(zip(runs, steps, strict=True)) if i != j)
        if min(sources) < 0:
            if j is not None:
                dims[j] = dims[j]._replace(extent=parts[j].span.count)
            tile.emit(NEUTRAL if IGNORED in sources else FILLED, dims, 0, goal)
            continue
        source = sum(at * axis.array for at, axis in zip(sources, axes, strict=True))
        place = sum(at * axis.place for at, axis in zip(sources, axes, strict=True))
        if j is None:
            tile.emit(LOAD, dims, source, goal, reads=True, place=place)
        else:
            unit = dims[j].source
            dims = [dim._replace(place=0) for dim in dims]
            tile.sweep(dims, j, parts[j].span, source, goal, unit, reads=True, writes=writes)


def tile_code(
    parts: Sequence[Part], axes: Sequence[Axis], passes: Sequence[int], room: int, tables: list[Ints], *,
    direct: bool, finish: bool, additive: bool,
) -> list[list[int]]:  # fmt: skip
    """Return the instructions for a tile.

    Parameters
    ----------
    parts, axes : sequence
        One of each for each axis in memory order.
    passes : sequence of int
        The axes to be reduced, in order.
    room : int
        See `Tile`.
    tables : list of array of int64
        Where counts are kept; this adds to them.
    direct : bool
        Whether the first pass may read the array itself.
    finish : bool
        Whether the results need a pass of their own.
    additive : bool
        Whether an element that counts twice would show.
    """
    tile = Tile(room, additive, tables)
    extents = [part.span.length for part in parts]
    results = [axis.result for axis in axes]
    j = passes[0]
    # Windows along `j` would cover a fill element of another axis many times.
    direct = (
        direct and parts[j].span.affine and not (additive and any(r.source == FILL for p in parts for r in p.span.runs))
    )
    source, target, left = 0, room, list(passes)
    if direct:
        left = left[1:]
        extents[j] = parts[j].span.count
        final = not left and not finish
        _reads(tile, parts, axes, results if final else packed(extents), j, 0, writes=final)
    else:
        _reads(tile, parts, axes, packed(extents), None, 0, writes=False)
    for j in left:
        steps, unit = packed(extents), packed(extents)[j]
        extents[j] = parts[j].span.count
        final = j == left[-1] and not finish
        dims = [Dim(*three) for three in zip(extents, steps, results if final else packed(extents), strict=True)]
        tile.sweep(dims, j, parts[j].span, source, 0 if final else target, unit, reads=False, writes=final)
        source, target = target, source
    if finish:
        took, counts = 1, []
        for part in parts:
            if isinstance(part.taking, int):
                took *= part.taking
                counts.append(-1)
            else:
                counts.append(sum(map(len, tables)))
                tables.append(part.taking)
        dims = [Dim(*five) for five in zip(extents, packed(extents), results, [0] * len(axes), counts, strict=True)]
        tile.emit(STORE, dims, source, 0, writes=True, took=took)
    return tile.code
