"""Changes of meaning in StableHLO text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.ir.mutators.registry import stablehlo_meaning

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.ir.mutators.mlir import Program, Statement

OTHER = {
    "add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply",
    "maximum": "minimum", "minimum": "maximum", "and": "or", "or": "xor", "xor": "and",
    "sine": "cosine", "cosine": "sine", "tanh": "logistic", "exponential": "tanh", "sqrt": "rsqrt",
    "rsqrt": "sqrt", "negate": "abs", "remainder": "divide", "power": "atan2",
    "partition_id": "replica_id", "all_gather": "all_to_all",
}  # fmt: skip
ORDERED = {"subtract", "divide", "power", "remainder", "atan2", "compare", "dot_general", "complex"}
SHARDINGS = re.compile(r'mhlo\.sharding = "\{(devices[^}]*\}?|replicated)\}"')


def pick(module: Program, rng: Random, fits: Callable[[Statement], object]) -> Statement | None:
    """Return one of the live statements that fit."""
    found = [s for s in module.live() if fits(s)]
    return rng.choice(found) if found else None


def word(statement: Statement) -> str:
    """Return an operation's name without its dialect."""
    return statement.op.partition(".")[2]


def rewrite(
    module: Program, rng: Random, pattern: str, new: Callable[[re.Match[str]], str], op: str = ""
) -> bool:
    """Replace the first match of a pattern in one live statement of an operation."""
    found = pick(module, rng, lambda s: op in s.op and re.search(pattern, s.rest))
    if found is None:
        return False
    before = found.rest
    found.rest = re.sub(pattern, new, before, count=1)
    module.put(found)
    return found.rest != before


@stablehlo_meaning
def operation(module: Program, rng: Random) -> bool:
    """An operation is another one."""
    found = pick(module, rng, lambda s: s.op.startswith("stablehlo.") and word(s) in OTHER)
    if found:
        found.op = f"stablehlo.{OTHER[word(found)]}"
        module.put(found)
    return found is not None


@stablehlo_meaning
def operands(module: Program, rng: Random) -> bool:
    """Two operands are exchanged where their order matters."""
    directed = {"comparison_direction EQ", "comparison_direction NE"}

    def fits(s: Statement) -> bool:
        if word(s) not in ORDERED or len(s.operands) != 2 or any(d in s.rest for d in directed):
            return False
        types = s.types[0] if s.whole else []
        return len(set(types)) == 1 and s.operands[0] != s.operands[1]

    found = pick(module, rng, fits)
    if found:
        found.operands.reverse()
        module.put(found)
    return found is not None


@stablehlo_meaning
def constant(module: Program, rng: Random) -> bool:
    """A constant has another value."""

    def other(m: re.Match[str]) -> str:
        if m[2] in {"true", "false"}:
            return m[1] + {"true": "false", "false": "true"}[m[2]]
        if "." in m[2]:
            return m[1] + f"{float(m[2]) + 0.5:.6e}"
        return m[1] + str(int(m[2]) + (1 if int(m[2]) < 100 else -1))

    pattern = r"(dense<)(true|false|-?\d+(?:\.\d+e[+-]\d+)?)(?=>)"
    return rewrite(module, rng, pattern, other, "stablehlo.constant")


@stablehlo_meaning
def comparison(module: Program, rng: Random) -> bool:
    """A comparison has another direction."""
    turned = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}
    return rewrite(
        module, rng, r"(comparison_direction )(\w\w)>", lambda m: f"{m[1]}{turned[m[2]]}>"
    )


@stablehlo_meaning
def groups(module: Program, rng: Random) -> bool:
    """A collective has other groups."""
    known = {"[[0, 1, 2, 3]]": "[[0, 1], [2, 3]]", "[[0, 1], [2, 3]]": "[[0, 2], [1, 3]]"}
    known |= {"[[0, 2], [1, 3]]": "[[0, 1, 2, 3]]", "[[0, 3], [1, 2]]": "[[0, 1], [2, 3]]"}

    def other(m: re.Match[str]) -> str:
        new = known.get(m[1], m[1])
        rows = new.count("[") - 1
        return f"replica_groups = dense<{new}> : tensor<{rows}x{4 // rows}xi64>"

    return rewrite(module, rng, r"replica_groups = dense<([^>]*)> : tensor<\w+>", other)


@stablehlo_meaning
def permute_pairs(module: Program, rng: Random) -> bool:
    """A permute sends the other way."""
    pattern = r"source_target_pairs = dense<\[\[(\d), (\d)\]"
    return rewrite(
        module,
        rng,
        pattern,
        lambda m: f"source_target_pairs = dense<[[{m[1]}, {(int(m[2]) + 2) % 4}]",
    )


@stablehlo_meaning
def global_ids(module: Program, rng: Random) -> bool:
    """A collective's groups no longer hold numbers of devices."""
    return rewrite(module, rng, r", use_global_device_ids", lambda _: "")


@stablehlo_meaning
def contracted(module: Program, rng: Random) -> bool:
    """A product contracts another dimension."""
    turn = {"0": "1", "1": "0"}
    pattern = r"((?:lhs|rhs)_contracting_dimensions = \[)([01])\]"
    return rewrite(module, rng, pattern, lambda m: f"{m[1]}{turn[m[2]]}]")


@stablehlo_meaning
def precision(module: Program, rng: Random) -> bool:
    """A product is computed with another precision."""
    return rewrite(module, rng, r"<precision DEFAULT>", lambda _: "<precision HIGHEST>")


@stablehlo_meaning
def host_mark(module: Program, rng: Random) -> bool:
    """What was marked to be computed on the host is not."""
    before = [*module.rows]
    module.rows = [re.sub(r'_xla_compute_type = "host"(, )?', "", row) for row in before]
    return module.rows != before


@stablehlo_meaning
def argument_sharding(module: Program, rng: Random) -> bool:
    """An argument is sharded otherwise."""
    at = next((i for i, r in enumerate(module.rows) if 'sym_visibility = "public"' in r), None)
    if at is None:
        return False
    row = module.rows[at]
    inside, _, rest = row.partition("], function_type")
    found = [*SHARDINGS.finditer(inside)]
    if found:
        one = rng.choice(found)
        new = "{replicated}" if "devices" in one[0] else "{devices=[4]<=[4]}"
        inside = f'{inside[: one.start()]}mhlo.sharding = "{new}"{inside[one.end() :]}'
    else:
        inside, count = re.subn(r'<@(\w+), \[\{"\w+"\}', r"<@\1, [{}", inside, count=1)
        if not count:
            return False
    module.rows[at] = f"{inside}], function_type{rest}"
    return True


@stablehlo_meaning
def memory_kind(module: Program, rng: Random) -> bool:
    """An argument or a result is in another memory."""
    turned = {"pinned_host": "device", "device": "pinned_host"}
    places = [
        (i, m) for i, row in enumerate(module.rows)
        for m in re.finditer(r'mhlo\.memory_kind = "(\w+)"', row)
    ]  # fmt: skip
    if not places:
        return False
    at, place = rng.choice(places)
    row, new = module.rows[at], f'mhlo.memory_kind = "{turned[place[1]]}"'
    module.rows[at] = row[: place.start()] + new + row[place.end() :]
    return True


@stablehlo_meaning
def donation(module: Program, rng: Random) -> bool:
    """An argument is no longer donated, or now it is."""
    at = next((i for i, r in enumerate(module.rows) if 'sym_visibility = "public"' in r), None)
    if at is None:
        return False
    row = module.rows[at]
    new = re.sub(
        r"(jax\.buffer_donor = true|tf\.aliasing_output = \d+ : i32)(, )?", "", row, count=1
    )
    new = new.replace(", }", "}")
    if new == row:
        new = row.replace("arg_attrs = [{", "arg_attrs = [{jax.buffer_donor = true, ", 1)
        new = new.replace("true, }", "true}")
    module.rows[at] = new
    return new != row


@stablehlo_meaning
def result_replaced(module: Program, rng: Random) -> bool:
    """A function returns an operand of what it returned."""
    every = {(s.function, s.result): s for s in module.live() if s.result and s.whole}

    def source(s: Statement) -> str | None:
        if s.op != "func.return" or s.function != 1:
            return None
        for operand in s.operands:
            made = every.get((s.function, operand))
            if made is None or word(made) not in OTHER:
                continue
            taken, out = made.types
            return next((o for o, t in zip(made.operands, taken, strict=True) if t == out), None)
        return None

    found = pick(module, rng, source)
    if found is None:
        return False
    new = source(found)
    old = next(o for o in found.operands if word(every.get((1, o), found)) in OTHER)
    found.operands = [str(new) if o == old else o for o in found.operands]
    module.put(found)
    return True


@stablehlo_meaning
def removed(module: Program, rng: Random) -> bool:
    """An operation is not done: its operand is used instead."""

    def fits(s: Statement) -> bool:
        known = {*OTHER, "collective_permute"}
        if not (s.whole and s.result and word(s) in known and s.operands):
            return False
        taken, out = s.types
        return out == taken[0] and s.operands[0] != s.result

    found = pick(module, rng, fits)
    if found is None:
        return False
    del module.rows[found.at]
    module.replace(found, found.operands[0])
    return True


@stablehlo_meaning
def rounded(module: Program, rng: Random) -> bool:
    """A value is rounded to bf16 on its way."""
    found = pick(
        module, rng,
        lambda s: s.whole and s.result and word(s) in OTHER and s.types[1].endswith("xf32>"),
    )  # fmt: skip
    if found is None:
        return False
    wide = found.types[1]
    narrow = wide.replace("xf32>", "xbf16>")
    module.replace(found, "%wide")
    row = module.rows[found.at]
    indent = row[: len(row) - len(row.lstrip())]
    module.rows[found.at] = row.replace("%wide", found.result, 1)
    module.rows[found.at + 1 : found.at + 1] = [
        f'{indent}%narrow = "stablehlo.convert"({found.result}) : ({wide}) -> {narrow}',
        f'{indent}%wide = "stablehlo.convert"(%narrow) : ({narrow}) -> {wide}',
    ]
    return True


@stablehlo_meaning
def devices_counted(module: Program, rng: Random) -> bool:
    """The module is for another number of devices."""
    before = [*module.rows]
    module.rows = [re.sub(r"num_partitions = (\d+)", "num_partitions = 8", row) for row in before]
    return module.rows != before


@stablehlo_meaning
def permutation(module: Program, rng: Random) -> bool:
    """A transpose leaves everything where it was."""
    pattern = r"permutation = array<i64: 1, 0>"
    return rewrite(module, rng, pattern, lambda _: "permutation = array<i64: 0, 1>")


@stablehlo_meaning
def broadcast(module: Program, rng: Random) -> bool:
    """A broadcast goes along another dimension."""
    pattern = r"(broadcast_dimensions = array<i64: )(\d)>"
    return rewrite(module, rng, pattern, lambda m: f"{m[1]}{1 - int(m[2]) if m[2] in '01' else 0}>")


@stablehlo_meaning
def target(module: Program, rng: Random) -> bool:
    """A custom call calls something else."""
    return rewrite(
        module, rng, r'call_target_name = "(\w+)"', lambda m: f'call_target_name = "{m[1]}_2"'
    )


@stablehlo_meaning
def iota(module: Program, rng: Random) -> bool:
    """An iota counts along another dimension."""
    pattern = r"iota_dimension = ([01])(?= : i64\}> : \(\) -> tensor<\d+x\d)"
    return rewrite(module, rng, pattern, lambda m: f"iota_dimension = {1 - int(m[1])}")


@stablehlo_meaning
def slice_bounds(module: Program, rng: Random) -> bool:
    """A slice begins earlier by one."""
    pattern = r"limit_indices = array<i64: (\d+)(.*)start_indices = array<i64: ([1-9]\d*)"

    def earlier(m: re.Match[str]) -> str:
        limit, start = int(m[1]) - 1, int(m[3]) - 1
        return f"limit_indices = array<i64: {limit}{m[2]}start_indices = array<i64: {start}"

    return rewrite(module, rng, pattern, earlier)
