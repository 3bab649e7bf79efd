"""Device lists: plain, iota (`[2,4]<=[4,2]T(1,0)`) and of a mesh (`mesh[x=2,y=4] {x}`)."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from math import prod
from typing import NamedTuple

from conformance.ir.hlo.lexing import LARGEST, Unexpected, inside, integers, parts

_IOTA = re.compile(r"\[([\d,]*)\](?:T\(([\d,]*)\))?", re.ASCII)
_LIST = re.compile(r"\[([\d,]*)\]<=(.*)", re.ASCII)
_MESH = re.compile(
    r"@?mesh(?:\[([^\[\]]*)\]|<([^<>]*)>)(?:, ?device_ids=\(([^()]*(?:\([^()]*\))?)\))?", re.ASCII
)
_MAXIMAL = re.compile(r"(?:maximal_mesh|single_device)\[device_ids?=(\d{1,18})\]", re.ASCII)
_AXIS = re.compile(r"""["']?([^"'=:]+)["']?(?:=(\d{1,18})|:\((\d{1,18})\)(\d{1,18}))?""", re.ASCII)

MOST_AXES = 64

Groups = tuple[tuple[int, ...], ...]


class Axis(NamedTuple):
    """An axis of a mesh, or a part of it.

    Attributes:
        name: Its name in the mesh.
        before: Product of the sizes of the parts of the axis that come before this one.
        size: Size of this part; 0 for the whole axis.
    """

    name: str
    before: int = 1
    size: int = 0


class Mesh(NamedTuple):
    """Named axes over devices.

    Attributes:
        axes: Size of each axis by name, in order.
        devices: Devices, row-major over the axes.
    """

    axes: dict[str, int]
    devices: tuple[int, ...]

    def cut(self, dimensions: list[list[Axis]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the devices seen with one dimension for each list of axes.

        Axes that no list names make up one more dimension, the last.

        Returns:
            Size of each dimension, and the devices, row-major over them.

        Raises:
            Unexpected: If an axis is not in the mesh, is cut unevenly or is used twice.
        """
        cuts: dict[str, set[int]] = {name: {1, size} for name, size in self.axes.items()}
        for axis in chain(*dimensions):
            if axis.name not in cuts:
                raise Unexpected(axis.name, f"an axis of the mesh, one of {', '.join(self.axes)}")
            if axis.size:
                cuts[axis.name] |= {axis.before, axis.before * axis.size}
        pieces: list[tuple[str, int]] = []
        sizes: list[int] = []
        for name, places in cuts.items():
            ordered = sorted(places)
            for low, high in pairwise(ordered):
                if low == 0 or high % low or high > self.axes[name]:
                    raise Unexpected(name, "a part that divides the axis")
                pieces.append((name, low))
                sizes.append(high // low)
        order: list[int] = []
        shape: list[int] = []
        for axes in dimensions:
            mine = [n for axis in axes for n in self._pieces(axis, pieces)]
            shape.append(prod([sizes[n] for n in mine]))
            order += mine
        if len(set(order)) != len(order):
            raise Unexpected(str(dimensions), "each axis at most once")
        rest = [n for n in range(len(sizes)) if n not in order]
        shape.append(prod([sizes[n] for n in rest]))
        return tuple(shape), transposed(self.devices, sizes, order + rest)

    def _pieces(self, axis: Axis, pieces: list[tuple[str, int]]) -> list[int]:
        high = axis.before * axis.size if axis.size else self.axes[axis.name]
        return [
            n
            for n, (name, low) in enumerate(pieces)
            if name == axis.name and axis.before <= low < high
        ]


def transposed(
    values: tuple[int, ...], sizes: list[int] | tuple[int, ...], order: list[int] | tuple[int, ...]
) -> tuple[int, ...]:
    """Return row-major values of an array with its dimensions in another order."""
    strides = [1] * len(sizes)
    for n in range(len(sizes) - 2, -1, -1):
        strides[n] = strides[n + 1] * sizes[n + 1]
    places = [0]
    for n in order:
        steps = range(0, strides[n] * sizes[n], strides[n])
        places = [place + step for place in places for step in steps]
    return tuple([values[place] for place in places])


def iota(text: str) -> tuple[int, ...]:
    """Return the devices of `[4,2]T(1,0)`: all of them, counted up, dimensions reordered."""
    match = _IOTA.fullmatch(text)
    if match is None:
        raise Unexpected(text, "'[sizes]' or '[sizes]T(order)'")
    sizes = integers(match[1])
    order = tuple(range(len(sizes))) if match[2] is None else integers(match[2])
    if sorted(order) != list(range(len(sizes))):
        raise Unexpected(text, "each dimension once in T(...)")
    count = _product(sizes, text)
    return transposed(tuple(range(count)), sizes, order)


def array(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and devices of `[2,2]<=[4]` or `[2,2]0,1,2,3`."""
    match = _LIST.fullmatch(text)
    if match is not None:
        shape, devices = integers(match[1]), iota(match[2])
    else:
        head, _, tail = text.partition("]")
        if not head.startswith("["):
            raise Unexpected(text, "'[sizes]' and devices")
        shape, devices = integers(head[1:]), integers(tail)
    if _product(shape, text) != len(devices):
        raise Unexpected(text, "as many devices as the sizes say")
    return shape, devices


def mesh(text: str) -> tuple[Mesh, str]:
    """Return the mesh a text begins with, and what follows it.

    Raises:
        Unexpected: If there is none, or its devices do not fit its axes.
    """
    if match := _MAXIMAL.match(text):
        return Mesh({}, (int(match[1]),)), text[match.end() :]
    match = _MESH.match(text)
    if match is None:
        raise Unexpected(text, "a mesh")
    axes: dict[str, int] = {}
    for part in parts(match[1] or match[2] or ""):
        axis = _AXIS.fullmatch(part)
        if axis is None or axis[2] is None or axis[1] in axes:
            raise Unexpected(part, "name=size")
        axes[axis[1]] = int(axis[2])
    if len(axes) > MOST_AXES:
        raise Unexpected(text, f"at most {MOST_AXES} axes")
    count = _product(tuple(axes.values()), text)
    ids = match[3]
    if ids is None:
        devices = tuple(range(count))
    else:
        ids = ids.strip().removeprefix("<=")
        devices = iota(ids) if ids.startswith("[") else integers(ids)
    if len(devices) != count:
        raise Unexpected(text, f"{count} devices")
    return Mesh(axes, devices), text[match.end() :]


def axes_of(text: str) -> list[Axis]:
    """Return the axes of `x, y:(2)4`; what marks a dimension as open (`?`) says nothing."""
    found = []
    for part in parts(text):
        match = _AXIS.fullmatch(part)
        if match is None or match[2] is not None:
            raise Unexpected(part, "an axis")
        if match[1] != "?":
            found.append(Axis(match[1], int(match[3] or 1), int(match[4] or 0)))
    return found


def groups(text: str) -> Groups:
    """Return device groups, whatever way they are spelled."""
    if text.startswith("{"):
        return tuple([integers(inside(part)) for part in parts(inside(text))])
    if text.startswith("["):
        shape, devices = array(text)
        if len(shape) != 2:  # noqa: PLR2004 - groups, and devices in each
            raise Unexpected(text, "'[groups,size]<=...'")
        size = shape[1]
    else:
        found, rest = mesh(text)
        sizes, devices = found.cut([[], axes_of(inside(rest.strip()))])
        size = sizes[1]
        # the axes no one named tell the groups apart, so they come first
        devices = transposed(devices, [size, sizes[2]], [1, 0])
    if not size:
        return ()
    return tuple([devices[n : n + size] for n in range(0, len(devices), size)])


def _product(sizes: tuple[int, ...], text: str) -> int:
    count = 1
    for size in sizes:
        count *= size
        if size < 0 or count > LARGEST:
            raise Unexpected(text, f"at most {LARGEST} devices")
    return count
