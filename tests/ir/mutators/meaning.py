"""Changes of meaning in HLO text: operations, constants, loops, results.

Only what the result depends on is changed; the registry takes a mutant only if the referee finds
another meaning.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

from tests.ir.mutators.registry import meaning, meaning_pair
from tests.ir.mutators.text import ARRAY, Block, Line, logical, parts_of, split

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.ir.mutators.text import Text

BINARY = {
    "add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply",
    "maximum": "minimum", "minimum": "maximum", "and": "or", "or": "xor", "xor": "and",
    "power": "atan2", "remainder": "divide", "shift-left": "shift-right-logical",
    "shift-right-logical": "shift-left", "shift-right-arithmetic": "shift-right-logical",
}  # fmt: skip
UNARY = {
    "sine": "cosine", "cosine": "sine", "tanh": "logistic", "exponential": "exponential-minus-one",
    "rsqrt": "sqrt", "sqrt": "rsqrt", "negate": "abs", "abs": "negate", "log": "log-plus-one",
    "log-plus-one": "log", "round-nearest-even": "round-nearest-afz",
    "round-nearest-afz": "round-nearest-even", "floor": "ceil", "popcnt": "not",
    "real": "imag", "imag": "real", "partition-id": "replica-id", "replica-id": "partition-id",
}  # fmt: skip
UNORDERED = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}
TURNED = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}


def pick(
    text: Text, rng: Random, fits: Callable[[Block, Line], object], within: set[str] | None = None
) -> tuple[Block, Line] | None:
    """Return one of the live instructions that fit."""
    found = [
        (block, line)
        for block, line in text.live()
        if (within is None or block.name in within) and fits(block, line)
    ]
    return rng.choice(found) if found else None


def swap(items: list[str], i: int, j: int) -> None:
    """Exchange two items."""
    items[i], items[j] = items[j], items[i]


# Operations


@meaning
def operation_changed(text: Text, rng: Random) -> bool:
    """An operation is another one."""
    found = pick(text, rng, lambda _, x: x.op in BINARY or x.op in UNARY)
    if found:
        found[1].op = {**BINARY, **UNARY}[found[1].op]
    return found is not None


@meaning
def loop_operation_changed(text: Text, rng: Random) -> bool:
    """An operation in the body of a loop is another one."""
    found = pick(text, rng, lambda _, x: x.op in BINARY or x.op in UNARY, text.inside("body"))
    if found:
        found[1].op = {**BINARY, **UNARY}[found[1].op]
    return found is not None


@meaning
def operands_swapped(text: Text, rng: Random) -> bool:
    """Two operands are exchanged where their order matters."""

    def pairs(block: Block, line: Line) -> list[tuple[int, int]]:
        if line.op in UNORDERED | {
            "tuple",
            "while",
            "fusion",
            "call",
            "conditional",
            "custom-call",
        }:
            return []
        known, names = block.by_name(), line.takes
        types = [logical(known[name].type) for name in names]
        every = [(i, j) for i in range(len(names)) for j in range(i)]
        if line.op == "compare" and line.get("direction") in {"EQ", "NE"}:
            return []
        if line.op in {"concatenate", "sort", "reduce"} and len(names) > 16:
            return []
        return [(i, j) for i, j in every if types[i] == types[j] and names[i] != names[j]]

    found = pick(text, rng, pairs)
    if not found:
        return False
    i, j = rng.choice(pairs(*found))
    swap(found[1].operands, i, j)
    return True


@meaning
def call_operands_swapped(text: Text, rng: Random) -> bool:
    """Two arguments of a fusion are exchanged."""

    def pairs(block: Block, line: Line) -> list[tuple[int, int]]:
        known, names = block.by_name(), line.takes
        types = [known[name].type for name in names]
        every = [(i, j) for i in range(len(names)) for j in range(i)]
        return [(i, j) for i, j in every if types[i] == types[j] and names[i] != names[j]]

    found = pick(text, rng, lambda b, x: x.op in {"fusion", "call"} and pairs(b, x))
    if not found:
        return False
    i, j = rng.choice(pairs(*found))
    swap(found[1].operands, i, j)
    return True


@meaning
def comparison_changed(text: Text, rng: Random) -> bool:
    """A comparison has another direction."""
    found = pick(text, rng, lambda _, x: x.op == "compare")
    if found:
        found[1].put("direction", TURNED[str(found[1].get("direction"))])
    return found is not None


@meaning
def instruction_removed(text: Text, rng: Random) -> bool:
    """An operation is not done: its operand is used instead."""
    ops = {*BINARY, *UNARY, "reverse", "clamp", "select", "reduce-precision"}

    def same(block: Block, line: Line) -> list[str]:
        if line.op not in ops or line.root:
            return []
        known = block.by_name()
        return [n for n in line.takes if logical(known[n].type) == logical(line.type)]

    found = pick(text, rng, same)
    if not found:
        return False
    block, line = found
    block.replace(line.name, rng.choice(same(block, line)))
    block.lines.remove(line)
    return True


def other_number(text: str, dtype: str, rng: Random) -> str | None:
    """Return another literal of a type, None if the text is none of ours."""
    if dtype == "pred":
        swapped = {"true": "false", "false": "true", "1": "0", "0": "1"}
        return swapped.get(text)
    if re.fullmatch(r"-?\d+", text):
        wrap = int(text) >= 100
        return str(int(text) + (-1 if wrap else 1) * rng.randrange(1, 4))
    if re.fullmatch(r"-?(inf|nan)", text):
        return "0.5"
    if re.fullmatch(r"-?\d*\.?\d+(e[+-]?\d+)?", text):
        return f"{float(text) * 1.25 + 1:.6g}"
    return None


@meaning
def constant_changed(text: Text, rng: Random) -> bool:
    """A scalar constant has another value."""
    found = pick(
        text, rng,
        lambda _, x: x.op == "constant" and other_number(x.operands[0], x.dtype, rng) is not None,
    )  # fmt: skip
    if found:
        line = found[1]
        line.operands = [str(other_number(line.operands[0], line.dtype, rng))]
    return found is not None


@meaning
def constant_nudged(text: Text, rng: Random) -> bool:
    """A scalar constant differs in its last digit, or in the sign of its zero."""
    found = pick(
        text, rng,
        lambda _, x: x.op == "constant" and x.dtype in {"f32", "f64"}
        and re.fullmatch(r"-?\d+(\.\d+)?", x.operands[0]),
    )  # fmt: skip
    if found:
        value = found[1].operands[0]
        more = value + ("00001" if "." in value else ".00001")
        found[1].operands = ["-0" if value == "0" else more]
    return found is not None


@meaning
def element_changed(text: Text, rng: Random) -> bool:
    """One element of an array constant has another value."""
    found = pick(
        text, rng,
        lambda _, x: x.op == "constant" and x.operands[0][0] == "{" and "..." not in x.operands[0],
    )  # fmt: skip
    if not found:
        return False
    literal = found[1].operands[0]
    places = list(re.finditer(r"[^\s{},()]+", literal))
    place = rng.choice(places) if places else None
    new = None if place is None else other_number(place[0], found[1].dtype, rng)
    if place is None or new is None:
        return False
    found[1].operands = [literal[: place.start()] + new + literal[place.end() :]]
    return True


@meaning
def rounded_to_bf16(text: Text, rng: Random) -> bool:
    """A value is rounded to bf16 on its way."""
    ops = {*BINARY, *UNARY, "dot", "fusion", "select", "reduce", "convolution", "all-reduce"}
    found = pick(text, rng, lambda _, x: x.dtype == "f32" and not x.root and x.op in ops)
    if not found:
        return False
    block, line = found
    narrow = line.copy(name=text.fresh("convert"), op="convert", attributes=[])
    narrow.type, narrow.operands = line.type.replace("f32", "bf16", 1), [f"%{line.name}"]
    wide = line.copy(name=text.fresh("convert.wide"), op="convert", attributes=[])
    wide.operands = [f"%{narrow.name}"]
    block.replace(line.name, wide.name)
    block.insert_after(line, narrow, wide)
    return True


@meaning
def dtype_changed(text: Text, rng: Random) -> bool:
    """A product or a conversion has another type, from which its users get the old one."""
    other = {"f32": "f16", "s32": "s64", "u32": "u16", "bf16": "f32", "f16": "bf16", "u64": "u32"}
    ops = {"dot", "convolution", "convert"}
    found = pick(text, rng, lambda _, x: x.op in ops and x.dtype in other and not x.root)
    if not found:
        return False
    block, line = found
    back = line.copy(name=text.fresh("convert.back"), op="convert", attributes=[])
    back.operands = [f"%{line.name}"]
    block.replace(line.name, back.name)
    line.type = line.type.replace(line.dtype, other[line.dtype], 1)
    block.insert_after(line, back)
    return True


@meaning
def conversion_rounds(text: Text, rng: Random) -> bool:
    """A conversion rounds to whole numbers first."""
    found = pick(
        text, rng,
        lambda b, x: x.op == "convert" and b.by_name()[x.takes[0]].dtype in {"f32", "bf16", "f64"},
    )  # fmt: skip
    if not found:
        return False
    block, line = found
    source = block.by_name()[line.takes[0]]
    new = source.copy(name=text.fresh("round"), op="round-nearest-even", attributes=[])
    new.operands = [f"%{source.name}"]
    block.insert_after(source, new)
    line.rewire(source.name, new.name)
    return True


# Attributes of operations


def numbers_of(line: Line, key: str) -> list[int]:
    """Return the numbers of an attribute such as `dimensions={0,2}`."""
    return [int(n) for n in re.findall(r"\d+", line.get(key) or "")]


def put_numbers(line: Line, key: str, values: list[int]) -> None:
    """Set an attribute of numbers."""
    line.put(key, "{" + ",".join(map(str, values)) + "}")


@meaning
def slice_moved(text: Text, rng: Random) -> bool:
    """A slice begins one further."""

    def moves(block: Block, line: Line) -> list[tuple[int, int]]:
        if line.op != "slice":
            return []
        bounds = re.findall(r"\[(\d+):(\d+)(?::\d+)?\]", line.get("slice") or "")
        shape = block.by_name()[line.takes[0]].shape
        up = [(i, 1) for i, (_, end) in enumerate(bounds) if int(end) < shape[i]]
        return up + [(i, -1) for i, (start, _) in enumerate(bounds) if int(start) > 0]

    found = pick(text, rng, moves)
    if not found:
        return False
    at, by = rng.choice(moves(*found))
    parts = split(str(found[1].get("slice"))[1:-1])
    start, end, *stride = parts[at][1:-1].split(":")
    parts[at] = "[" + ":".join([str(int(start) + by), str(int(end) + by), *stride]) + "]"
    found[1].put("slice", "{" + ", ".join(parts) + "}")
    return True


@meaning
def contraction_changed(text: Text, rng: Random) -> bool:
    """A product contracts another dimension of the same size."""

    def others(block: Block, line: Line) -> list[tuple[str, list[int]]]:
        out = []
        if line.op != "dot":
            return []
        for side, name in zip(("lhs", "rhs"), line.takes, strict=True):
            shape = block.by_name()[name].shape
            held = numbers_of(line, f"{side}_contracting_dims")
            batch = numbers_of(line, f"{side}_batch_dims")
            for i, dim in enumerate(held):
                free = set(range(len(shape))) - {*held, *batch}
                same = [new for new in free if shape[new] == shape[dim] > 1]
                out += [(f"{side}_contracting_dims", [*held[:i], n, *held[i + 1 :]]) for n in same]
        return out

    found = pick(text, rng, others)
    if found:
        put_numbers(found[1], *rng.choice(others(*found)))
    return found is not None


@meaning
def labels_swapped(text: Text, rng: Random) -> bool:
    """A convolution's kernel is read the other way round, where its sizes allow."""

    def square(block: Block, line: Line) -> bool:
        labels = line.get("dim_labels") or ""
        kernel = labels.partition("_")[2].partition("->")[0]
        if line.op != "convolution" or not kernel:
            return False
        shape = block.by_name()[line.takes[1]].shape
        i, o = shape[kernel.index("i")], shape[kernel.index("o")]
        return i == o > 1

    found = pick(text, rng, square)
    if not found:
        return False
    left, _, rest = str(found[1].get("dim_labels")).partition("_")
    kernel, _, out = rest.partition("->")
    kernel = kernel.translate(str.maketrans("io", "oi"))
    found[1].put("dim_labels", f"{left}_{kernel}->{out}")
    return True


@meaning
def window_changed(text: Text, rng: Random) -> bool:
    """A window is padded on the other side."""
    found = pick(
        text, rng,
        lambda _, x: any(a != b for a, b in re.findall(r"(\d+)_(\d+)", x.get("window") or "")),
    )  # fmt: skip
    if not found:
        return False
    window = str(found[1].get("window"))
    turned = re.sub(r"pad=\S+?(?=[ }])", lambda m: re.sub(r"(\d+)_(\d+)", r"\2_\1", m[0]), window)
    found[1].put("window", turned)
    return turned != window


@meaning
def window_strides(text: Text, rng: Random) -> bool:
    """A window strides or dilates otherwise."""
    pattern = r"(stride|rhs_dilate|lhs_dilate)=(\d+)"
    found = pick(text, rng, lambda _, x: re.search(pattern, x.get("window") or ""))
    if not found:
        return False
    window = str(found[1].get("window"))
    found[1].put("window", re.sub(pattern, lambda m: f"{m[1]}={int(m[2]) + 1}", window, count=1))
    return True


@meaning
def padding_moved(text: Text, rng: Random) -> bool:
    """A pad is on the other side."""
    found = pick(
        text, rng, lambda _, x: x.op == "pad" and re.search(r"\d_\d", x.get("padding") or "")
    )
    if not found:
        return False
    found[1].put("padding", re.sub(r"(-?\d+)_(-?\d+)", r"\2_\1", str(found[1].get("padding"))))
    return True


@meaning
def permutation_changed(text: Text, rng: Random) -> bool:
    """A transpose exchanges two more dimensions of the same size."""

    def pairs(_: Block, line: Line) -> list[tuple[int, int]]:
        shape = line.shape if line.op == "transpose" else []
        return [(i, j) for i in range(len(shape)) for j in range(i) if shape[i] == shape[j] > 1]

    found = pick(text, rng, pairs)
    if not found:
        return False
    i, j = rng.choice(pairs(*found))
    order = numbers_of(found[1], "dimensions")
    order[i], order[j] = order[j], order[i]
    put_numbers(found[1], "dimensions", order)
    return True


@meaning
def reduction_changed(text: Text, rng: Random) -> bool:
    """A reduction goes over another dimension; its type follows."""

    def moves(block: Block, line: Line) -> list[tuple[int, int]]:
        if line.op != "reduce" or not line.dtype:
            return []
        held, shape = numbers_of(line, "dimensions"), block.by_name()[line.takes[0]].shape
        free = set(range(len(shape))) - set(held)
        return [(i, n) for i, d in enumerate(held) for n in free if shape[n] > 1 and shape[d] > 1]

    found = pick(text, rng, moves)
    if not found:
        return False
    block, line = found
    i, new = rng.choice(moves(block, line))
    held = numbers_of(line, "dimensions")
    left = sorted([*held[:i], new, *held[i + 1 :]])
    put_numbers(line, "dimensions", left)
    shape = [n for d, n in enumerate(block.by_name()[line.takes[0]].shape) if d not in left]
    line.type = ARRAY.sub(rf"\1[{','.join(map(str, shape))}]", line.type)
    return True


@meaning
def iota_turned(text: Text, rng: Random) -> bool:
    """An iota counts along another dimension."""

    def free(_: Block, line: Line) -> list[int]:
        held = numbers_of(line, "iota_dimension") if line.op == "iota" else []
        return [i for i, n in enumerate(line.shape) if i not in held and n > 1] if held else []

    found = pick(text, rng, free)
    if found:
        found[1].put("iota_dimension", str(rng.choice(free(*found))))
    return found is not None


@meaning
def precision_changed(text: Text, rng: Random) -> bool:
    """A product is computed with another precision."""
    found = pick(text, rng, lambda _, x: x.op in {"dot", "convolution"})
    if not found:
        return False
    value = found[1].get("operand_precision")
    found[1].put("operand_precision", "{high,high}" if value is None else None)
    return True


@meaning
def concatenation_reordered(text: Text, rng: Random) -> bool:
    """A reverse turns another dimension, or a concatenation has its parts in another order."""
    found = pick(text, rng, lambda _, x: x.op == "concatenate" and len(set(x.takes)) > 1)
    if found:
        found[1].operands.reverse()
        known = found[0].by_name()
        types = [logical(known[n].type) for n in found[1].takes]
        return types == types[::-1]
    return False


@meaning
def mantissa_changed(text: Text, rng: Random) -> bool:
    """A reduced precision keeps other bits."""
    found = pick(text, rng, lambda _, x: x.op == "reduce-precision")
    if found:
        found[1].put("mantissa_bits", str(int(found[1].get("mantissa_bits") or 0) + 1))
    return found is not None


FLAGS = (
    ("is_stable", None), ("lower", "false"), ("left_side", "false"), ("unit_diagonal", "true"),
    ("transpose_a", "TRANSPOSE"), ("fft_type", "IFFT"), ("feature_group_count", "2"),
    ("algorithm", "rng_philox"), ("index_vector_dim", "0"), ("slice_sizes", "{1,1}"),
    ("unique_indices", "true"), ("fft_length", "{2}"),
)  # fmt: skip


@meaning
def flag_changed(text: Text, rng: Random) -> bool:
    """A flag or a size of an operation is another one."""
    options = [
        (line, key, value)
        for _, line in text.live()
        for key, value in FLAGS
        if line.get(key) not in {None, value}
    ]
    if not options:
        return False
    line, key, value = rng.choice(options)
    line.put(key, value)
    return True


@meaning
def target_changed(text: Text, rng: Random) -> bool:
    """A custom call calls something else."""
    found = pick(text, rng, lambda _, x: x.get("custom_call_target") is not None)
    if found:
        value = str(found[1].get("custom_call_target")).strip('"')
        found[1].put("custom_call_target", f'"{value}_v2"')
    return found is not None


INDEXING = (
    "offset_dims", "collapsed_slice_dims", "start_index_map", "update_window_dims",
    "inserted_window_dims", "scatter_dims_to_operand_dims", "slice_sizes", "dynamic_slice_sizes",
)  # fmt: skip


@meaning
def indexing_changed(text: Text, rng: Random) -> bool:
    """A gather, a scatter or a dynamic slice has another number in what says how it indexes."""
    options = [(x, k) for _, x in text.live() for k in INDEXING if numbers_of(x, k)]
    if not options:
        return False
    line, key = rng.choice(options)
    values = numbers_of(line, key)
    values[-1] += 1
    put_numbers(line, key, values)
    return True


@meaning
def custom_call_configured(text: Text, rng: Random) -> bool:
    """A custom call gets another option, or a kernel computes something else."""
    found = pick(text, rng, lambda _, x: x.op == "custom-call" and x.get("backend_config"))
    if not found:
        return False
    value = str(found[1].get("backend_config"))
    turned = {"true": "false", "false": "true"}
    if value.startswith('{"'):
        config = json.loads(value)
        call = config.get("custom_call_config", {})
        if "body" in call:
            body = base64.b64decode(call["body"])
            call["body"] = base64.b64encode(body.replace(b"addf", b"subf")).decode()
        for option in config.values():
            if isinstance(option, dict) and "epilogue" in option:
                option["epilogue"] = "BIAS"
        new = json.dumps(config, separators=(",", ":"))
    else:
        # Whether a kernel may be debugged is nothing that it computes.
        new = re.sub(r"(?<!debug )= (true|false)", lambda m: f"= {turned[m[1]]}", value, count=1)
        if new == value:
            new = re.sub(r"= (\d+)", lambda m: f"= {int(m[1]) + 1}", value, count=1)
    found[1].put("backend_config", new)
    return True


# Reducers, loops, branches


@meaning
def reducer_changed(text: Text, rng: Random) -> bool:
    """What a reduction or a collective reduces with is another operation."""
    ops = {"reduce", "reduce-window", "all-reduce", "all-reduce-start", "reduce-scatter", "scatter"}
    found = pick(text, rng, lambda _, x: x.op in ops and x.get("to_apply"))
    if not found:
        return False
    inner = text.by_name()[found[1].callees()[0]]
    other = {"add": "maximum", "maximum": "minimum", "minimum": "maximum", "multiply": "add"}
    other |= {"and": "or", "or": "and"}
    lines = [line for line in inner.lines if line.op in other and line.name in inner.live()]
    if not lines:
        return False
    line = rng.choice(lines)
    line.op = other[line.op]
    return True


@meaning
def trip_count_changed(text: Text, rng: Random) -> bool:
    """A loop runs once more; what notes its trip count says so too."""
    known = text.by_name()

    def bound(_: Block, line: Line) -> Line | None:
        if line.op != "while":
            return None
        inner = known[str(line.get("condition")).lstrip("%")]
        live = [x for x in inner.lines if x.name in inner.live()]
        found = [x for x in live if x.op == "constant" and re.fullmatch(r"\d+", x.operands[0])]
        return found[0] if len(found) == 1 else None

    found = pick(text, rng, bound)
    if not found:
        return False
    limit = bound(*found)
    assert limit is not None
    limit.operands = [str(int(limit.operands[0]) + 1)]
    value = found[1].get("backend_config")
    if value is not None:
        count = re.sub(
            r'("known_trip_count":\{"n":")(\d+)', lambda m: m[1] + str(int(m[2]) + 1), value
        )
        found[1].put("backend_config", count)
    return True


@meaning
def body_and_condition(text: Text, rng: Random) -> bool:
    """The condition of a loop compares the other way."""
    turned = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
    found = pick(text, rng, lambda _, x: x.op == "compare", text.inside("condition"))
    if found:
        found[1].put("direction", turned[str(found[1].get("direction"))])
    return found is not None


@meaning
def branches_swapped(text: Text, rng: Random) -> bool:
    """Two branches of a conditional are exchanged."""
    found = pick(text, rng, lambda _, x: x.op == "conditional")
    if not found:
        return False
    names = found[1].callees()
    i, j = rng.sample(range(len(names)), 2)
    found[1].recall({names[i]: names[j], names[j]: names[i]})
    return True


@meaning
def carry_swapped(text: Text, rng: Random) -> bool:
    """The body of a loop returns two values of its carry in the other order."""
    bodies = {str(x.get("body")).lstrip("%") for _, x in text.live() if x.op == "while"}

    def pairs(block: Block, line: Line) -> list[tuple[int, int]]:
        if not line.root or line.op != "tuple":
            return []
        types = parts_of(line.type)
        every = [(i, j) for i in range(len(types)) for j in range(i)]
        return [(i, j) for i, j in every if types[i] == types[j] and line.takes[i] != line.takes[j]]

    found = pick(text, rng, pairs, bodies)
    if not found:
        return False
    i, j = rng.choice(pairs(*found))
    swap(found[1].operands, i, j)
    return True


def invariant(text: Text) -> list[tuple[Block, Line, int, Line, Line]]:
    """Return what loops only read: loop, its operand, number, the array, its reader in the body."""
    out = []
    known = text.by_name()
    for block, line in text.live():
        if line.op != "while":
            continue
        start, body = block.by_name()[line.takes[0]], known[str(line.get("body")).lstrip("%")]
        if start.op != "tuple" or body.root.op != "tuple":
            continue
        for i, name in enumerate(body.root.takes):
            reader, value = body.by_name()[name], block.by_name()[start.takes[i]]
            passed = reader.op == "get-tuple-element" and reader.get("index") == str(i)
            used = [x for x, _ in body.users(name) if not x.root and x.name in body.live()]
            if passed and used and value.dtype[:1] in {"f", "b"} and value.dtype != "pred":
                out.append((block, start, i, value, reader))
    return out


@meaning_pair
def moved_into_loop(before: Text, after: Text, rng: Random) -> bool:
    """An operation that a loop does not change is done in every turn instead of once."""
    options = invariant(before)
    if not options:
        return False
    at = rng.randrange(len(options))
    block, start, i, value, _ = options[at]
    once = value.copy(name=before.fresh("negate"), op="negate", attributes=[])
    once.operands = [f"%{value.name}"]
    block.lines.insert(block.lines.index(start), once)
    start.operands[i] = start.operands[i].removesuffix(value.name) + once.name
    *_, reader = invariant(after)[at]
    body = next(b for b in after.blocks if reader in b.lines)
    every = reader.copy(name=after.fresh("negate"), op="negate", attributes=[])
    every.operands = [f"%{reader.name}"]
    for line in body.lines:
        if not line.root:
            line.rewire(reader.name, every.name)
    body.insert_after(reader, every)
    return True


@meaning_pair
def moved_out_of_loop(before: Text, after: Text, rng: Random) -> bool:
    """An operation that a loop did in every turn is done once before it."""
    return bool(moved_into_loop(after, before, rng))


# Results


@meaning
def outputs_swapped(text: Text, rng: Random) -> bool:
    """Two results of the entry are exchanged."""
    root = text.entry.root
    if root.op != "tuple":
        return False
    types = [logical(t) for t in parts_of(root.type)]
    every = [(i, j) for i in range(len(types)) for j in range(i)]
    pairs = [(i, j) for i, j in every if types[i] == types[j] and root.takes[i] != root.takes[j]]
    if pairs:
        swap(root.operands, *rng.choice(pairs))
    return bool(pairs)


@meaning
def output_replaced(text: Text, rng: Random) -> bool:
    """A result of the entry is another value of the same type."""
    root, known = text.entry.root, text.entry.by_name()
    names = root.takes if root.op == "tuple" else []
    others = [
        line for line in text.entry.lines if line.op in {"parameter", "fusion", *BINARY, *UNARY}
    ]
    options = [
        (i, line.name)
        for i, name in enumerate(names)
        for line in others
        if line.name not in names and logical(line.type) == logical(known[name].type)
    ]
    if options:
        i, new = rng.choice(options)
        root.rewire(names[i], new, i)
    return bool(options)


@meaning
def elements_swapped(text: Text, rng: Random) -> bool:
    """Another part of a tuple of the same type is taken."""

    def others(block: Block, line: Line) -> list[int]:
        if line.op != "get-tuple-element" or line.root:
            return []
        types = [logical(t) for t in parts_of(block.by_name()[line.takes[0]].type)]
        here = int(line.get("index") or 0)
        return [i for i, t in enumerate(types) if i != here and t == types[here]]

    found = pick(text, rng, others)
    if found:
        found[1].put("index", str(rng.choice(others(*found))))
    return found is not None


@meaning
def parameters_swapped(text: Text, rng: Random) -> bool:
    """Two parameters of the entry that look the same come in the other order."""
    found = text.entry.parameters()
    every = [(a, b) for i, a in enumerate(found) for b in found[:i]]
    pairs = [
        (a, b) for a, b in every if a.type == b.type and a.get("sharding") == b.get("sharding")
    ]
    if not pairs:
        return False
    a, b = rng.choice(pairs)
    a.operands, b.operands = b.operands, a.operands
    old = (rf"\b{re.escape(a.name)}: ", rf"\b{re.escape(b.name)}: ")
    rest = re.sub(old[0], "\0: ", text.entry.rest, count=1)
    rest = re.sub(old[1], f"{a.name}: ", rest, count=1)
    text.entry.rest = rest.replace("\0: ", f"{b.name}: ")
    return True
