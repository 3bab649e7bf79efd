"""Noise in StableHLO text: names, places, order. What it returns means the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.ir.mutators.mlir import VALUE, Program, strings_apart, without_location
from tests.ir.mutators.registry import stablehlo_noise
from tests.ir.mutators.text import end_of, split

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def outside_strings(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed where it is not in quotes."""
    return "".join(part if quoted else change(part) for quoted, part in strings_apart(text))


@stablehlo_noise()
def values_renamed(module: Program, rng: Random) -> bool:
    """Every value has another name."""
    shift = rng.randrange(100, 900)

    def rename(part: str) -> str:
        return re.sub(r"%(arg)?(\d+)\b", lambda m: f"%{'v' * bool(m[1])}{int(m[2]) + shift}", part)

    module.rows = [outside_strings(row, rename) for row in module.rows]
    return True


@stablehlo_noise()
def values_have_words(module: Program, rng: Random) -> bool:
    """Every value is named by a word."""

    def rename(part: str) -> str:
        return re.sub(r"%(\d+)\b", r"%cst_\1", part)

    module.rows = [outside_strings(row, rename) for row in module.rows]
    return True


@stablehlo_noise()
def places_removed(module: Program, rng: Random) -> bool:
    """Nothing says where it comes from."""
    module.rows = [without_location(row) for row in module.rows if not row.startswith("#loc")]
    return True


@stablehlo_noise()
def places_renumbered(module: Program, rng: Random) -> bool:
    """The table of places has other numbers."""
    shift = rng.randrange(1, 500)

    def number(part: str) -> str:
        return re.sub(r"#loc(\d+)", lambda m: f"#loc{int(m[1]) + shift}", part)

    before = [*module.rows]
    module.rows = [outside_strings(row, number) for row in module.rows]
    return module.rows != before


@stablehlo_noise()
def source_moved(module: Program, rng: Random) -> bool:
    """The program lies elsewhere."""
    before = [*module.rows]
    new = "/home/u/x y/q.py"
    module.rows = [r.replace("/src/programs.py", new) if r[:4] == "#loc" else r for r in before]
    return module.rows != before


@stablehlo_noise()
def functions_renamed(module: Program, rng: Random) -> bool:
    """Every function but the first to be called has another name."""
    names = re.findall(r'sym_name = "([\w.]+)", sym_visibility = "private"', str(module))
    for i, name in enumerate(names):
        new, old = f"f_{i}_{rng.randrange(100)}", re.escape(name)
        for at, row in enumerate(module.rows):
            renamed = re.sub(rf'sym_name = "{old}", sym_vis', f'sym_name = "{new}", sym_vis', row)
            module.rows[at] = re.sub(rf"callee = @{old}(?![\w.])", f"callee = @{new}", renamed)
    return bool(names)


@stablehlo_noise()
def module_has_another_name(module: Program, rng: Random) -> bool:
    """The module has another name."""
    before = [*module.rows]
    module.rows = [
        re.sub(r'(builtin.module"\(\) <\{.*?sym_name = ")\w+', r"\1jit_g", r) for r in before
    ]
    return module.rows != before


@stablehlo_noise()
def mesh_renamed(module: Program, rng: Random) -> bool:
    """The mesh has another name."""
    if '"sdy.mesh"() <{' not in str(module):
        return False
    module.rows = [
        re.sub(r"@mesh\b", "@grid", row.replace('sym_name = "mesh"', 'sym_name = "grid"'))
        for row in module.rows
    ]
    return True


def properties(text: str) -> list[str]:
    """Return the properties of an operation; what stands in angle brackets has commas too."""
    found: list[str] = []
    for part in split(text):
        before = found[-1].replace("->", "") if found else ""
        named = re.match(r"[\w.]+( = |$)", part)
        if found and (not named or before.count("<") > before.count(">")):
            found[-1] += f", {part}"
        else:
            found.append(part)
    return found


@stablehlo_noise()
def dictionaries_reordered(module: Program, rng: Random) -> bool:
    """The properties of operations stand in another order."""
    found = False
    for at, row in enumerate(module.rows):
        begin = row.find("<{")
        if begin < 0 or row.lstrip().startswith("#"):
            continue
        end = end_of(row, begin + 1)
        parts = properties(row[begin + 2 : end - 1])
        rng.shuffle(parts)
        module.rows[at] = row[: begin + 2] + ", ".join(parts) + row[end - 1 :]
        found |= len(parts) > 1
    return found


@stablehlo_noise()
def channels_changed(module: Program, rng: Random) -> bool:
    """Channels have other numbers."""
    shift = rng.randrange(1, 50)
    before = [*module.rows]
    module.rows = [
        re.sub(r"<handle = (\d+),", lambda m: f"<handle = {int(m[1]) + shift},", row)
        for row in before
    ]
    return module.rows != before


@stablehlo_noise()
def indented_otherwise(module: Program, rng: Random) -> bool:
    """Lines are not indented."""
    module.rows = [row.lstrip() for row in module.rows]
    return True


@stablehlo_noise()
def neighbours_swapped(module: Program, rng: Random) -> bool:
    """Pairs of lines that do not depend on one another stand in the other order."""
    done = -1
    quiet = {"collective", "all", "reduce", "custom", "rng", "ragged"}
    for first in module.statements():
        second = next((s for s in module.statements() if s.at == first.at + 1), None)
        if done >= first.at or second is None:
            continue
        if not (first.whole and second.whole and first.result and second.result):
            continue
        if first.op.split(".")[1].split("_")[0] in quiet or first.op == "func.call":
            continue
        if first.result in VALUE.findall(module.rows[second.at].partition("=")[2]):
            continue
        if rng.random() < 0.7:
            rows = module.rows
            rows[first.at], rows[second.at] = rows[second.at], rows[first.at]
            done = second.at
    return done >= 0


@stablehlo_noise()
def functions_reordered(module: Program, rng: Random) -> bool:
    """Functions stand in another order."""
    starts = [s.at for s in module.statements() if s.op == "func.func"]
    ends = [i for i, row in enumerate(module.rows) if re.match(r"  \}\) : \(\) -> \(\)", row)]
    if len(starts) < 2 or len(starts) != len(ends):
        return False
    parts = [module.rows[a : b + 1] for a, b in zip(starts, ends, strict=True)]
    middle = [row for part in reversed(parts) for row in part]
    module.rows[starts[0] : ends[-1] + 1] = middle
    return True


@stablehlo_noise()
def result_names_removed(module: Program, rng: Random) -> bool:
    """Nothing says what the results are called in Python."""
    before = [*module.rows]
    module.rows = [re.sub(r'jax\.result_info = "(?:[^"\\]|\\.)*"(, )?', "", row) for row in before]
    return module.rows != before
