"""Shardings: every spelling of GSPMD's and of the mesh form, to one meaning."""

from __future__ import annotations

import re
from itertools import groupby
from math import prod

from conformance.ir.graph import Sharding
from conformance.ir.hlo.devices import Axis, array, axes_of, mesh, transposed
from conformance.ir.hlo.lexing import (
    Unexpected,
    closing,
    inside,
    integer,
    parts,
    without_comments,
)

SUBGROUPS = ("manual", "unreduced", "replicated")
"""Kinds of subgroups, in the order in which they stand after the data's dimensions."""

_GROUP = re.compile(r"\s*\b(shard_as|shard_like) (\d{1,18})")
_MESHES = ("mesh", "@mesh", "maximal_mesh", "single_device")
_UNREDUCED = re.compile(r"unreduced[ =]([a-z]+)", re.ASCII)
_PLAIN = frozenset({"replicated", "manual", "unknown", "unreduced"})


def sharding(text: str) -> tuple[Sharding, tuple[str, ...]]:
    """Return a sharding, and for each of its parts which shard group it is in.

    Args:
        text: As after `sharding=`, braces included.

    Returns:
        The sharding; and `as 3`, `like 3` or nothing for each part of it (one if it is no tuple),
        empty when nothing is in a group.

    Raises:
        Unexpected: If the text is no sharding.
    """
    content = inside(without_comments(text))
    if content.startswith("{") or not content:
        found = [_one(inside(part)) for part in parts(content)]
        groups = tuple([group for _, group in found])
        return Sharding("tuple", parts=tuple([one for one, _ in found])), _none_if_empty(groups)
    one, group = _one(content)
    return one, _none_if_empty((group,))


def _none_if_empty(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if any(groups) else ()


def _one(text: str) -> tuple[Sharding, str]:
    group = ""
    if match := _GROUP.search(text):
        group = f"{match[1].removeprefix('shard_')} {match[2]}"
        text = text[: match.start()] + text[match.end() :]
    if text.startswith(_MESHES):
        return _of_mesh(text), group
    word, space, rest = text.partition(" ")
    if match := _UNREDUCED.fullmatch(text):
        return Sharding(f"unreduced {match[1]}"), group
    if word in _PLAIN:
        _nothing_but_metadata(space + rest)
        return Sharding(word), group
    if word == "maximal":
        device, _, rest = rest.removeprefix("device=").partition(" ")
        _nothing_but_metadata(rest)
        return Sharding("maximal", devices=(integer(device),)), group
    if word.startswith("devices="):
        return _tiled(word.removeprefix("devices="), rest), group
    raise Unexpected(text, "a sharding")


def _tiled(devices: str, rest: str) -> Sharding:
    """Return the sharding of `devices=[2,2]<=[4] last_tile_dim_replicate ...`."""
    tiles, order = array(devices)
    subgroups: tuple[str, ...] = ()
    if rest.startswith("last_tile_dim_replicate"):
        subgroups, rest = ("replicated",), rest.removeprefix("last_tile_dim_replicate")
    elif rest.startswith("last_tile_dims="):
        start = len("last_tile_dims=")
        if not rest.startswith("{", start):
            raise Unexpected(rest, "'last_tile_dims={...}'")
        end = closing(rest, start)
        subgroups, rest = tuple(parts(rest[start + 1 : end - 1])), rest[end:]
    _nothing_but_metadata(rest)
    if not {kind.partition(" ")[0] for kind in subgroups} <= set(SUBGROUPS) or len(subgroups) > len(
        tiles
    ):
        raise Unexpected(str(subgroups), f"some of {', '.join(SUBGROUPS)}")
    return tiled(tiles, order, subgroups)


def tiled(tiles: tuple[int, ...], devices: tuple[int, ...], subgroups: tuple[str, ...]) -> Sharding:
    """Return a tiling in its one form: subgroups merged and in order, none of size 1.

    Which replica a device holds means nothing, so devices are sorted within a replicated group.
    """
    data = len(tiles) - len(subgroups)
    kept = [n for n in range(data, len(tiles)) if tiles[n] != 1]
    kept.sort(key=lambda n: (SUBGROUPS.index(subgroups[n - data].split()[0]), subgroups[n - data]))
    devices = transposed(devices, tiles, [*range(data), *kept])
    shape = tiles[:data]
    kinds = []
    for kind, members in groupby(kept, key=lambda n: subgroups[n - data]):
        kinds.append(kind)
        shape += (prod([tiles[n] for n in members]),)
    if len(kinds) == 1 and prod(tiles[:data]) == 1:
        return Sharding(kinds[0])
    if not kinds and devices == (0,):
        return Sharding("replicated")
    if kinds[-1:] == ["replicated"]:
        size = shape[-1]
        runs = [devices[n : n + size] for n in range(0, len(devices), size)]
        devices = tuple([device for run in runs for device in sorted(run)])
    return Sharding("tiled", shape, devices, tuple(kinds))


def _of_mesh(text: str) -> Sharding:
    """Return the sharding of `mesh[x=2,y=4], [{x}, {}], replicated={...}, manual={y}`."""
    found, rest = mesh(text)
    rest = rest.strip().removeprefix(",").strip()
    if not text.startswith(("mesh", "@mesh")):
        _nothing_but_metadata(rest)
        return Sharding("maximal", devices=found.devices)
    word = rest.partition(",")[0].strip()
    if match := _UNREDUCED.fullmatch(rest):
        return Sharding(f"unreduced {match[1]}")
    if word in _PLAIN:
        _nothing_but_metadata(rest.removeprefix(word))
        return Sharding(word)
    dimensions: list[list[Axis]] = []
    named: dict[str, list[Axis]] = {}
    for part in parts(rest):
        name, sign, value = part.partition("=")
        if part.startswith("[") and not dimensions and not named:
            dimensions = [axes_of(inside(p)) for p in parts(inside(part, "[]"))]
        elif sign and name in SUBGROUPS and name not in named:
            how, _, value = value.partition("{")
            named[f"{name} {how}".strip()] = axes_of(inside("{" + value))
        elif name != "metadata":
            raise Unexpected(part, "'[{axes}, ...]', 'manual={axes}' or the like")
    # replicated ones are the same as those that are not named
    kinds = [kind for kind in named if kind != "replicated"]
    tiles, devices = found.cut(dimensions + [named[kind] for kind in kinds])
    if "replicated" in named:
        found.cut([*dimensions, *named.values()])
    return tiled(tiles, devices, (*kinds, "replicated"))


def _nothing_but_metadata(text: str) -> None:
    text = text.strip().removeprefix(",").strip()
    if text and not (text.startswith("metadata={") and closing(text, 9) == len(text)):
        raise Unexpected(text, "the end of the sharding")
