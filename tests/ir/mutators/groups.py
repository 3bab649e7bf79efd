"""Replica groups and shardings: from every spelling to lists of devices, and back."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
MESH = re.compile(r"mesh\[([^\]]*)\] \{([^}]*)\}$")


def numbers(text: str) -> list[int]:
    """Return the numbers of a list separated by commas."""
    return [int(n) for n in text.split(",") if n.strip()]


def iota(dims: Sequence[int], order: Sequence[int] | None) -> list[int]:
    """Return the numbers from 0, shaped as `dims`, transposed by `order`, flat."""
    order = list(order or range(len(dims)))
    strides = [prod(dims[i + 1 :]) for i in range(len(dims))]
    turned = [range(dims[i]) for i in order]
    return [sum(n * strides[i] for n, i in zip(at, order, strict=True)) for at in product(*turned)]


def groups_of(text: str) -> list[tuple[int, ...]]:
    """Return the groups that a value of `replica_groups` means.

    Raises:
        ValueError: If the spelling is not known.
    """
    if found := IOTA.fullmatch(text):
        count, size = numbers(found[1])
        flat = iota(numbers(found[2]), numbers(found[3] or "") or None)
        return [tuple(flat[i * size : (i + 1) * size]) for i in range(count)]
    if found := MESH.fullmatch(text):
        axes = [(n.strip("'"), int(s)) for n, s in (p.split("=") for p in found[1].split(","))]
        inner = [i for n in found[2].split(",") for i, a in enumerate(axes) if a[0] == n.strip("'")]
        outer = [i for i in range(len(axes)) if i not in inner]
        flat = iota([s for _, s in axes], [*outer, *inner])
        size = prod(axes[i][1] for i in inner)
        return [tuple(flat[i : i + size]) for i in range(0, len(flat), size)]
    if not re.fullmatch(r"\{[\d,{}]*\}", text):
        raise ValueError(f"unknown replica groups, expected lists, iota or mesh: {text}")
    return [tuple(numbers(inside)) for inside in re.findall(r"\{([\d,]+)\}", text[1:-1])]


def listed(groups: Sequence[tuple[int, ...]]) -> str:
    """Return groups as lists."""
    return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"


def spellings(groups: Sequence[tuple[int, ...]]) -> list[str]:
    """Return every spelling of groups over two axes or one."""
    if not groups:
        return ["{}"]
    count, size = len(groups), len(groups[0])
    total = count * size
    found = [listed(groups)]
    texts = [f"[{count},{size}]<=[{total}]", f"[{count},{size}]<=[{size},{count}]T(1,0)"]
    texts.append(f"mesh['a'={count},'b'={size}] {{'b'}}")
    texts.append(f"mesh['a'={size},'b'={count}] {{'a'}}")
    if count == 1:
        texts.append(f"mesh['a'={size}] {{'a'}}")
    return found + [text for text in texts if groups_of(text) == list(groups)]


def tiles(text: str) -> tuple[list[int], list[int]] | None:
    """Return sizes and devices of `devices=[4,1]<=[4]` or `devices=[2,2]0,1,2,3`, else None."""
    if found := re.match(r"devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text):
        return numbers(found[1]), iota(numbers(found[2]), numbers(found[3] or "") or None)
    if found := re.match(r"devices=\[([\d,]+)\]([\d,]+)", text):
        return numbers(found[1]), numbers(found[2])
    return None
