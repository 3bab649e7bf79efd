"""Shardings and device lists of HLO, in the spellings of GSPMD and of meshes.

A list of devices is plain, an iota (`[2,4]<=[4,2]T(1,0)`) or of a mesh (`mesh[x=2,y=4] {x}`).
"""

from __future__ import annotations

import re
from itertools import chain, groupby, pairwise
from math import prod
from typing import NamedTuple

from conformance.ir.graph import Sharding
from conformance.ir.hlo.lexing import (
    LARGEST,
    HloTextError,
    find_closing,
    match_all,
    parse_integer,
    parse_integers,
    split_parts,
    strip_brackets,
    strip_comments,
)

_IOTA = re.compile(r"\[([\d,]*)\](?:T\(([\d,]*)\))?", re.ASCII)
_LIST = re.compile(r"\[([\d,]*)\]<=(.*)", re.ASCII)
_MESH = re.compile(
    r"@?mesh(?:\[([^\[\]]*)\]|<([^<>]*)>)(?:, ?device_ids=\(([^()]*(?:\([^()]*\))?)\))?", re.ASCII
)
_MAXIMAL = re.compile(r"(?:maximal_mesh|single_device)\[device_ids?=(\d{1,18})\]", re.ASCII)
_AXIS = re.compile(r"""["']?([^"'=:]+)["']?(?:=(\d{1,18})|:\((\d{1,18})\)(\d{1,18}))?""", re.ASCII)

SUBGROUPS = ("manual", "unreduced", "replicated")
"""Kinds of subgroups, in their canonical order after the dimensions of the data."""

_SHARD_GROUP = re.compile(r"\s*\b(shard_as|shard_like) (\d{1,18})")
_MESHES = ("mesh", "@mesh", "maximal_mesh", "single_device")
_UNREDUCED = re.compile(r"unreduced[ =]([a-z]+)", re.ASCII)
_PLAIN = frozenset({"replicated", "manual", "unknown", "unreduced"})

MOST_AXES = 64
"""Limit of axes of a mesh: axes of size 1 cost time without adding devices."""

Groups = tuple[tuple[int, ...], ...]


class MeshAxis(NamedTuple):
    """An axis of a mesh, or a part of it.

    Attributes:
        name: The name in the mesh.
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

    def cut(self, dimensions: list[list[MeshAxis]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the devices as an array with a dimension for each list of axes.

        The axes in no list are merged into a last dimension.

        Returns:
            Size of each dimension, and the devices, row-major over them.

        Raises:
            HloTextError: If an axis is not in the mesh, is cut unevenly or is used twice.
        """
        cuts: dict[str, set[int]] = {name: {1, size} for name, size in self.axes.items()}
        for axis in chain(*dimensions):
            if axis.name not in cuts:
                raise HloTextError(axis.name, f"an axis of the mesh, one of {', '.join(self.axes)}")
            if axis.size:
                cuts[axis.name] |= {axis.before, axis.before * axis.size}
        pieces: list[tuple[str, int]] = []
        sizes: list[int] = []
        # An axis is cut wherever a part of it begins or ends, so that parts are whole pieces.
        for name, places in cuts.items():
            ordered = sorted(places)
            for low, high in pairwise(ordered):
                if low == 0 or high % low or high > self.axes[name]:
                    raise HloTextError(name, "a part that divides the axis")
                pieces.append((name, low))
                sizes.append(high // low)
        order: list[int] = []
        shape: list[int] = []
        for axes in dimensions:
            numbers = [n for axis in axes for n in self._find_pieces(axis, pieces)]
            shape.append(prod([sizes[n] for n in numbers]))
            order += numbers
        if len(set(order)) != len(order):
            raise HloTextError(str(dimensions), "each axis at most once")
        rest = [n for n in range(len(sizes)) if n not in order]
        shape.append(prod([sizes[n] for n in rest]))
        return tuple(shape), transpose(self.devices, sizes, order + rest)

    def _find_pieces(self, axis: MeshAxis, pieces: list[tuple[str, int]]) -> list[int]:
        high = axis.before * axis.size if axis.size else self.axes[axis.name]
        return [
            n
            for n, (name, low) in enumerate(pieces)
            if name == axis.name and axis.before <= low < high
        ]


def transpose(
    values: tuple[int, ...], sizes: list[int] | tuple[int, ...], order: list[int] | tuple[int, ...]
) -> tuple[int, ...]:
    """Return row-major values of an array with its dimensions in another order."""
    strides = [1] * len(sizes)
    for n in range(len(sizes) - 2, -1, -1):
        strides[n] = strides[n + 1] * sizes[n + 1]
    # Offsets are expanded dimension by dimension: linear in the devices, and without NumPy.
    places = [0]
    for n in order:
        steps = range(0, strides[n] * sizes[n], strides[n])
        places = [place + step for place in places for step in steps]
    return tuple([values[place] for place in places])


def _read_iota(text: str) -> tuple[int, ...]:
    """Return the devices of `[4,2]T(1,0)`: consecutive numbers, dimensions transposed."""
    match = match_all(_IOTA, text, "'[sizes]' or '[sizes]T(order)'")
    sizes = parse_integers(match[1])
    order = tuple(range(len(sizes))) if match[2] is None else parse_integers(match[2])
    if sorted(order) != list(range(len(sizes))):
        raise HloTextError(text, "each dimension once in T(...)")
    count = _count_devices(sizes, text)
    return transpose(tuple(range(count)), sizes, order)


def _read_array(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and devices of `[2,2]<=[4]` or `[2,2]0,1,2,3`."""
    match = _LIST.fullmatch(text)
    if match is not None:
        shape, devices = parse_integers(match[1]), _read_iota(match[2])
    else:
        # The older form of a tile assignment lists every device; the iota form names a range.
        head, _, tail = text.partition("]")
        if not head.startswith("["):
            raise HloTextError(text, "'[sizes]' and devices")
        shape, devices = parse_integers(head[1:]), parse_integers(tail)
    if _count_devices(shape, text) != len(devices):
        raise HloTextError(text, "as many devices as the sizes say")
    return shape, devices


def _read_mesh(text: str) -> tuple[Mesh, str]:
    """Return the mesh at the start of a text, and the rest of the text.

    Raises:
        HloTextError: If no mesh begins there, or its devices do not fit its axes.
    """
    if match := _MAXIMAL.match(text):
        return Mesh({}, (int(match[1]),)), text[match.end() :]
    match = _MESH.match(text)
    if match is None:
        raise HloTextError(text, "a mesh")
    axes: dict[str, int] = {}
    for part in split_parts(match[1] or match[2] or ""):
        axis = _AXIS.fullmatch(part)
        if axis is None or axis[2] is None or axis[1] in axes:
            raise HloTextError(part, "name=size")
        axes[axis[1]] = int(axis[2])
    if len(axes) > MOST_AXES:
        raise HloTextError(text, f"at most {MOST_AXES} axes")
    count = _count_devices(tuple(axes.values()), text)
    ids = match[3]
    if ids is None:
        devices = tuple(range(count))
    else:
        ids = ids.strip().removeprefix("<=")
        devices = _read_iota(ids) if ids.startswith("[") else parse_integers(ids)
    if len(devices) != count:
        raise HloTextError(text, f"{count} devices")
    return Mesh(axes, devices), text[match.end() :]


def _read_axes(text: str) -> list[MeshAxis]:
    """Return the axes of `x, y:(2)4`, without the `?` of an open dimension."""
    found = []
    for part in split_parts(text):
        match = match_all(_AXIS, part, "an axis")
        if match[2] is not None:
            raise HloTextError(part, "an axis")
        if match[1] != "?":
            found.append(MeshAxis(match[1], int(match[3] or 1), int(match[4] or 0)))
    return found


def read_device_groups(text: str) -> Groups:
    """Return device groups from any of their spellings."""
    if text.startswith("{"):
        return tuple(
            [parse_integers(strip_brackets(part)) for part in split_parts(strip_brackets(text))]
        )
    if text.startswith("["):
        shape, devices = _read_array(text)
        match shape:
            case (_, size):
                pass
            case _:
                raise HloTextError(text, "'[groups,size]<=...'")
    else:
        found, rest = _read_mesh(text)
        sizes, devices = found.cut([[], _read_axes(strip_brackets(rest.strip()))])
        size = sizes[1]
        # A group shares its coordinates on all other axes, so these come first.
        devices = transpose(devices, [size, sizes[2]], [1, 0])
    if not size:
        return ()  # no groups, as in `{}`
    return tuple([devices[n : n + size] for n in range(0, len(devices), size)])


def _count_devices(sizes: tuple[int, ...], text: str) -> int:
    # Checked at each step: the product itself could have millions of digits.
    count = 1
    for size in sizes:
        count *= size
        if size < 0 or count > LARGEST:
            raise HloTextError(text, f"at most {LARGEST} devices")
    return count


def read_sharding(text: str) -> tuple[Sharding, tuple[str, ...]]:
    """Return a sharding, and the shard group of each of its parts.

    Args:
        text: As after `sharding=`, braces included.

    Returns:
        The sharding, and the group of each part: `as 3`, `like 3` or an empty text. The groups are
        empty if no part has a group.

    Raises:
        HloTextError: If the text is no sharding.
    """
    content = strip_brackets(strip_comments(text))
    # Only the sharding of a tuple is empty or begins with inner braces: `{{replicated}, ...}`.
    if content.startswith("{") or not content:
        found = [_read_part(strip_brackets(part)) for part in split_parts(content)]
        whole = Sharding("tuple", parts=tuple([part for part, _ in found]))
    else:
        found = [_read_part(content)]
        whole = found[0][0]
    return whole, tuple([group for _, group in found]) if any(group for _, group in found) else ()


def _read_part(text: str) -> tuple[Sharding, str]:
    """Return the sharding of an array without the outer braces, and its shard group."""
    # The group may follow any spelling of a sharding, so it is cut out first.
    group = ""
    if match := _SHARD_GROUP.search(text):
        group = f"{match[1].removeprefix('shard_')} {match[2]}"
        text = text[: match.start()] + text[match.end() :]
    if text.startswith(_MESHES):
        return _read_mesh_sharding(text), group
    word, _, rest = text.partition(" ")
    if found := _read_word(text, word):
        return found, group
    if word == "maximal":
        device, _, rest = rest.removeprefix("device=").partition(" ")
        _check_rest(rest)
        return Sharding("maximal", devices=(parse_integer(device),)), group
    if word.startswith("devices="):
        return _read_tiled(word.removeprefix("devices="), rest), group
    raise HloTextError(text, "a sharding")


def _read_word(text: str, word: str) -> Sharding | None:
    """Return the sharding of a text that is a word, such as `replicated`."""
    # `unreduced max` names the pending reduction; plain `unreduced` is a sum.
    if match := _UNREDUCED.fullmatch(text):
        return Sharding(f"unreduced {match[1]}")
    if word not in _PLAIN:
        return None
    _check_rest(text.removeprefix(word))
    return Sharding(word)


def _read_tiled(devices: str, rest: str) -> Sharding:
    """Return the sharding of `devices=[2,2]<=[4] last_tile_dim_replicate ...`."""
    tiles, order = _read_array(devices)
    subgroups: tuple[str, ...] = ()
    if rest.startswith("last_tile_dim_replicate"):
        subgroups, rest = ("replicated",), rest.removeprefix("last_tile_dim_replicate")
    elif rest.startswith("last_tile_dims="):
        start = len("last_tile_dims=")
        if not rest.startswith("{", start):
            raise HloTextError(rest, "'last_tile_dims={...}'")
        end = find_closing(rest, start)
        subgroups, rest = tuple(split_parts(rest[start + 1 : end - 1])), rest[end:]
    _check_rest(rest)
    known = {kind.partition(" ")[0] for kind in subgroups} <= set(SUBGROUPS)
    if not known or len(subgroups) > len(tiles):
        raise HloTextError(str(subgroups), f"some of {', '.join(SUBGROUPS)}")
    return make_tiled(tiles, order, subgroups)


def make_tiled(
    tiles: tuple[int, ...], devices: tuple[int, ...], subgroups: tuple[str, ...]
) -> Sharding:
    """Return the canonical form of a tiling: subgroups merged and in order, none of size 1.

    Replicas are equal, so devices are sorted within a replicated group.
    """
    data = len(tiles) - len(subgroups)
    subgroup_dimensions = [n for n in range(data, len(tiles)) if tiles[n] != 1]
    subgroup_dimensions.sort(
        key=lambda n: (SUBGROUPS.index(subgroups[n - data].split()[0]), subgroups[n - data])
    )
    devices = transpose(devices, tiles, [*range(data), *subgroup_dimensions])
    shape = tiles[:data]
    kinds = []
    for kind, members in groupby(subgroup_dimensions, key=lambda n: subgroups[n - data]):
        kinds.append(kind)
        shape += (prod([tiles[n] for n in members]),)
    # A single subgroup that holds all devices: the number of dimensions has no meaning then.
    if len(kinds) == 1 and prod(tiles[:data]) == 1:
        return Sharding(kinds[0])
    # A single device holds everything, which is the same as replication.
    if not kinds and devices == (0,):
        return Sharding("replicated")
    if kinds[-1:] == ["replicated"]:
        # `SUBGROUPS` ends with replicated, so that replicas are neighbours in the device list.
        size = shape[-1]
        runs = [devices[n : n + size] for n in range(0, len(devices), size)]
        devices = tuple([device for run in runs for device in sorted(run)])
    return Sharding("tiled", shape, devices, tuple(kinds))


def _read_mesh_sharding(text: str) -> Sharding:
    """Return the sharding of `mesh[x=2,y=4], [{x}, {}], replicated={...}, manual={y}`."""
    found, rest = _read_mesh(text)
    rest = rest.strip().removeprefix(",").strip()
    if not text.startswith(("mesh", "@mesh")):
        _check_rest(rest)
        return Sharding("maximal", devices=found.devices)
    word = rest.partition(",")[0].strip()
    if named_alone := _read_word(rest, word):
        return named_alone
    dimensions: list[list[MeshAxis]] = []
    named: dict[str, list[MeshAxis]] = {}
    for part in split_parts(rest):
        name, sign, value = part.partition("=")
        if part.startswith("[") and not dimensions and not named:
            dimensions = [
                _read_axes(strip_brackets(p)) for p in split_parts(strip_brackets(part, "[]"))
            ]
        elif sign and name in SUBGROUPS and name not in named:
            how, _, value = value.partition("{")
            named[f"{name} {how}".strip()] = _read_axes(strip_brackets("{" + value))
        elif name != "metadata":
            raise HloTextError(part, "'[{axes}, ...]', 'manual={axes}' or the like")
    # Replicated axes mean the same as axes that are not named.
    kinds = [kind for kind in named if kind != "replicated"]
    tiles, devices = found.cut(dimensions + [named[kind] for kind in kinds])
    # Only checks that each axis occurs once.
    if "replicated" in named:
        found.cut([*dimensions, *named.values()])
    return make_tiled(tiles, devices, (*kinds, "replicated"))


def _check_rest(text: str) -> None:
    text = text.strip().removeprefix(",").strip()
    # The origin of an annotation is not a part of it.
    if text and not (text.startswith("metadata={") and find_closing(text, 9) == len(text)):
        raise HloTextError(text, "the end of the sharding")
