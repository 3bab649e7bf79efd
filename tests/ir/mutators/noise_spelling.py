"""Noise in HLO text: other spellings of the same, and what a compiler adds for itself."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from tests.ir.mutators.groups import groups_of, spellings, tiles
from tests.ir.mutators.registry import NEUTRAL, noise
from tests.ir.mutators.text import ARRAY, CALLS, COMMENT, Block, Line, logical, parts_of, split

if TYPE_CHECKING:
    from random import Random

    from tests.ir.mutators.text import Text

LAYOUT_MATTERS = re.compile(
    r"bitcast|custom-call|copy|fusion|while|tuple|conditional|call|.*-start|.*-done"
)
NAMES = ("branch_", "called_", "control-")
"""Attributes that are lists of names."""
ELEMENTWISE = {
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "sine", "cosine",
    "tanh", "exponential", "power", "select", "and", "or", "xor", "abs", "sqrt", "rsqrt",
    "compare", "clamp",
}  # fmt: skip


@noise()
def groups_respelled(text: Text, rng: Random) -> bool:
    """Replica groups are lists, iota or mesh axes."""
    found = False
    for _, line in text.lines():
        value = line.get("replica_groups")
        others = [] if value is None else [s for s in spellings(groups_of(value)) if s != value]
        if others:
            line.put("replica_groups", rng.choice(others))
            found = True
    return found


@noise()
def group_order(text: Text, rng: Random) -> bool:
    """The groups stand in another order, each with its members as they were."""
    found = False
    for _, line in text.lines():
        value = line.get("replica_groups")
        groups = [] if value is None else groups_of(value)
        if len(groups) > 1:
            rng.shuffle(groups)
            line.put("replica_groups", spellings(groups)[0])
            found = True
    return found


@noise()
def shardings_respelled(text: Text, rng: Random) -> bool:
    """Shardings list their devices or count them."""
    found = False
    for _, line in text.lines():
        value = line.get("sharding")
        known = None if value is None else tiles(value[1:])
        if value is None or known is None:
            continue
        sizes, devices = known
        head = f"devices=[{','.join(map(str, sizes))}]"
        tail = re.sub(r"^devices=\[[\d,]+\](?:<=\[[\d,]+\](?:T\([\d,]+\))?|[\d,]+)", "", value[1:])
        options = [f"{head}{','.join(map(str, devices))}"]
        options += [f"{head}<=[{len(devices)}]"] * (devices == sorted(devices))
        spelled = rng.choice(options) + tail
        if rng.random() < 0.5:
            spelled = spelled.replace("last_tile_dim_replicate", "last_tile_dims={replicated}")
        line.put("sharding", "{" + spelled)
        found = True
    return found


@noise()
def operand_shapes_added(text: Text, rng: Random) -> bool:
    """Operands are written with their shapes."""
    for block in text.blocks:
        known = block.by_name()
        for line in block.lines:
            for i, name in enumerate(line.takes):
                value = line.operands[i]
                if " " not in value.strip():
                    comment = COMMENT.match(value)
                    at = comment.end() if comment else 0
                    line.operands[i] = f"{value[:at]}{known[name].type} {value[at:]}"
    return True


@noise()
def operand_shapes_removed(text: Text, rng: Random) -> bool:
    """Operands are written without their shapes."""
    found = False
    for _, line in text.lines():
        for i, name in enumerate(line.takes):
            bare = line.operands[i].rsplit(" ", 1)[-1]
            found |= bare != line.operands[i]
            line.operands[i] = bare if name in bare else line.operands[i]
    return found


@noise()
def percent_signs_removed(text: Text, rng: Random) -> bool:
    """Names are written without percent signs."""
    for block in text.blocks:
        block.sign = ""
        for line in block.lines:
            line.sign = ""
            for i, name in enumerate(line.takes):
                line.operands[i] = line.operands[i][: -len(name)].rstrip("%") + name
            line.attributes = [
                a.replace("%", "") if CALLS.match(a) or a.startswith(NAMES) else a
                for a in line.attributes
            ]
    return True


@noise()
def comments_removed(text: Text, rng: Random) -> bool:
    """Long lists are not numbered."""
    before = str(text)
    text.head[0] = COMMENT.sub("", text.head[0])
    for block in text.blocks:
        block.rest = COMMENT.sub("", block.rest)
        for line in block.lines:
            line.type = COMMENT.sub("", line.type)
            line.operands = [COMMENT.sub("", o) for o in line.operands]
    return str(text) != before


@noise()
def comments_added(text: Text, rng: Random) -> bool:
    """Short lists are numbered too."""
    for _, line in text.lines():
        if line.op not in {"constant", "parameter"}:
            line.operands = [
                f"/*index={i}*/{o}" if i and not COMMENT.match(o) else o
                for i, o in enumerate(line.operands)
            ]
        if line.type.startswith("("):
            inside = split(line.type[1:-1])
            parts = [f"/*index={i}*/{p}" if i == 1 else p for i, p in enumerate(inside)]
            line.type = f"({', '.join(parts)})"
    return True


def without_layout(found: re.Match[str]) -> str:
    """Return a type without layout, but with its memory space."""
    space = re.search(r"S\(\d+\)", found[3] or "")
    return f"{found[1]}[{found[2]}]" + (f"{{:{space[0]}}}" if space else "")


@noise()
def tilings_removed(text: Text, rng: Random) -> bool:
    """Types of intermediate results say nothing about tiles."""
    before = str(text)
    for _, line in text.lines():
        line.type = re.sub(r"(?<=[\d{:)])(T\([^)]*\)(\([^)]*\))*)(L\(\d+\))?", "", line.type)
        line.type = re.sub(r":\}", "}", line.type).replace("{}", "")
    return str(text) != before


@noise()
def layout_changed(text: Text, rng: Random) -> bool:
    """Some intermediate arrays lie otherwise in memory, where no one looks at memory."""
    found = False
    for block in text.blocks:
        lines = block.by_name()
        near = {n for line in block.lines if LAYOUT_MATTERS.match(line.op) for n in line.takes}
        for line in block.lines:
            if line.root or line.op == "parameter" or LAYOUT_MATTERS.match(line.op):
                continue
            turned = ARRAY.match(line.type)
            order = re.match(r"\{([\d,]+)", turned[3] or "") if turned else None
            if line.name in near or order is None or "," not in order[1]:
                continue
            back = ",".join(reversed(order[1].split(",")))
            line.type = line.type.replace("{" + order[1], "{" + back, 1)
            found = True
        for line in block.lines:
            for i, name in enumerate(line.takes):
                if " " in line.operands[i]:
                    line.operands[i] = respelled(line.operands[i], lines[name].type)
    return found


def respelled(operand: str, type_: str) -> str:
    """Return an operand written with its shape, now another one."""
    comment = COMMENT.match(operand)
    return (comment[0] if comment else "") + type_ + " " + operand.rsplit(" ", 1)[-1]


DEFAULTS = {
    "gather": ("indices_are_sorted=false",), "scatter": ("unique_indices=false",),
    "dot": ("operand_precision={default,default}",), "sort": ("is_stable=false",),
    "convolution": ("feature_group_count=1", "batch_group_count=1"),
    "all-reduce": ("use_global_device_ids=false",), "fft": (), "cholesky": (),
}  # fmt: skip


@noise()
def defaults_spelled_out(text: Text, rng: Random) -> bool:
    """What has its default value is said all the same."""
    found = False
    for _, line in text.lines():
        for attribute in DEFAULTS.get(line.op, ()):
            if line.get(attribute.partition("=")[0]) is None:
                line.put(*attribute.split("=", 1))
                found = True
        if line.op == "slice":
            line.put("slice", re.sub(r"\[(\d+):(\d+)\]", r"[\1:\2:1]", str(line.get("slice"))))
            found = True
    return found


@noise()
def literals_respaced(text: Text, rng: Random) -> bool:
    """Array constants are written with other blanks."""
    found = False
    for _, line in text.lines():
        if line.op == "constant" and line.operands[0].startswith("{"):
            line.operands = [re.sub(r"\s*([{},])\s*", r"\1", line.operands[0])]
            found = True
    return found


@noise()
def predicates_respelled(text: Text, rng: Random) -> bool:
    """Truth values in arrays are words."""
    found = False
    for _, line in text.lines():
        if line.op == "constant" and line.dtype == "pred" and line.operands[0].startswith("{"):
            words = line.operands[0].replace("1", "true").replace("0", "false")
            line.operands = [words]
            found = True
    return found


@noise(NEUTRAL)
def shardy_removed(text: Text, rng: Random) -> bool:
    """What says in Shardy's words what is also said in GSPMD's is gone."""
    found = False
    for _, line in text.lines():
        value = line.get("frontend_attributes")
        if value is None or "xla.sdy.sharding" not in value or line.get("sharding") is None:
            continue
        kept = [p for p in split(value[1:-1]) if not p.startswith("xla.sdy.sharding")]
        line.put("frontend_attributes", "{" + ",".join(kept) + "}" if kept else None)
        found = True
    return found


@noise()
def kernel_source_moved(text: Text, rng: Random) -> bool:
    """The source of a kernel, named in its encoded body, lies elsewhere."""
    found = False
    for _, line in text.lines():
        value = line.get("backend_config") or ""
        body = re.search(r'"body":"([A-Za-z0-9+/=]+)"', value)
        if body is None:
            continue
        raw = base64.b64decode(body[1])
        new = base64.b64encode(raw.replace(b"/src/programs.py", b"/usr/kernels0.py")).decode()
        line.put("backend_config", value.replace(body[1], new))
        found |= new != body[1]
    return found


# What a compiler adds for itself: the same once it is folded


@noise(NEUTRAL)
def copy_inserted(text: Text, rng: Random) -> bool:
    """A value is copied before its users."""
    options = [
        (block, line)
        for block, line in text.live()
        if not line.root
        and line.shape
        and block.entry
        and line.op in ELEMENTWISE | {"dot", "reduce"}
    ]
    if not options:
        return False
    block, line = rng.choice(options)
    new = Line(line.indent, False, line.sign, text.fresh("copy"), line.type, "copy", [], [])
    block.replace(line.name, new.name)
    new.operands = [f"{line.sign}{line.name}"]
    block.insert_after(line, new)
    return True


@noise(NEUTRAL)
def fusion_made(text: Text, rng: Random) -> bool:
    """An operation becomes a fusion of its own."""
    options = [
        (block, line)
        for block, line in text.live()
        if line.op in ELEMENTWISE
        and line.shape
        and block.entry
        and len(set(line.takes)) == len(line.takes)
    ]
    if not options:
        return False
    block, line = rng.choice(options)
    known = block.by_name()
    name = text.fresh("fused_computation")
    inner = [
        Line("  ", False, "%", f"param_{i}.{name}", known[n].type, "parameter", [str(i)], [])
        for i, n in enumerate(line.takes)
    ]
    inside = line.copy(
        root=True, name=f"{line.name}.{name}", operands=[f"%{p.name}" for p in inner]
    )
    args = ", ".join(f"{p.name}: {logical(p.type)}" for p in inner)
    rest = f"({args}) -> {logical(line.type)} {{"
    text.blocks.insert(0, Block(False, "%", name, rest, [*inner, inside], ["}", ""]))
    line.op, line.attributes = "fusion", ["kind=kLoop", f"calls=%{name}"]
    return True


@noise(NEUTRAL)
def tuple_and_back(text: Text, rng: Random) -> bool:
    """A value goes into a tuple and comes out again."""
    options = [
        (block, line)
        for block, line in text.live()
        if not line.root
        and line.shape
        and block.entry
        and line.op in ELEMENTWISE | {"dot", "fusion"}
    ]
    if not options:
        return False
    block, line = rng.choice(options)
    held = Line("  ", False, "%", text.fresh("tuple"), f"({line.type})", "tuple", [], [])
    back = Line(
        "  ", False, "%", text.fresh("gte"), line.type, "get-tuple-element", [], ["index=0"]
    )
    block.replace(line.name, back.name)
    held.operands, back.operands = [f"%{line.name}"], [f"%{held.name}"]
    block.insert_after(line, held, back)
    return True


@noise(NEUTRAL)
def dead_instruction_added(text: Text, rng: Random) -> bool:
    """There is one more operation, whose result nobody uses."""
    options = [(b, x) for b, x in text.live() if x.op in ELEMENTWISE and not x.root and x.shape]
    if not options:
        return False
    block, line = rng.choice(options)
    new = line.copy(name=text.fresh("negate"), op="negate", attributes=[])
    new.operands = [f"%{line.name}"]
    block.insert_after(line, new)
    return True


@noise(NEUTRAL, judged=False)
def carry_permuted(text: Text, rng: Random) -> bool:
    """What a loop carries stands in another order, everywhere."""
    known = text.by_name()
    for block, line in text.live():
        if line.op != "while":
            continue
        start, held = block.by_name()[line.takes[0]], line.callees()
        users = [(block, line), *((known[n], known[n].parameters()[0]) for n in held)]
        root = known[str(line.get("body")).lstrip("%")].root
        if start.op != "tuple" or root.op != "tuple" or len(block.users(start.name)) != 1:
            continue
        reads = [x for b, source in users for x, _ in b.users(source.name)]
        if any(x.op != "get-tuple-element" for x in reads) or line.root:
            continue
        order = list(range(len(start.takes)))
        rng.shuffle(order)
        for x in reads:
            x.put("index", str(order.index(int(x.get("index") or 0))))
        for x in (start, root):
            plain = [COMMENT.sub("", o) for o in x.operands]
            x.operands = [plain[i] for i in order]
        types = parts_of(start.type)
        new = f"({', '.join(types[i] for i in order)})"
        for x in (start, root, *(source for _, source in users)):
            x.type = new
        for name in held:
            inner = known[name]
            before, arrow, after = inner.rest.partition(") -> ")
            name_ = before[1:].partition(": ")[0]
            out = logical(new) + " {" if after.startswith("(") else after
            inner.rest = f"({name_}: {logical(new)}{arrow}{out}"
        if any(" " in o for x in reads for o in x.operands):
            return False
        return order != sorted(order)
    return False


ASYNC = {"all-reduce", "all-gather", "collective-permute"}


def started(line: Line, operand: str) -> str:
    """Return the type of the start of an operation."""
    more = ", u32[], u32[]" if line.op == "collective-permute" else ""
    return line.type if line.op == "all-reduce" else f"({operand}, {line.type}{more})"


@noise(NEUTRAL)
def made_asynchronous(text: Text, rng: Random) -> bool:
    """A collective becomes a pair of start and done."""
    options = [(b, x) for b, x in text.live() if x.op in ASYNC and len(x.takes) == 1 and x.dtype]
    if not options:
        return False
    block, line = rng.choice(options)
    start = line.copy(name=text.fresh(f"{line.op}-start"), op=f"{line.op}-start")
    start.type = started(line, block.by_name()[line.takes[0]].type)
    block.lines.insert(block.lines.index(line), start)
    line.op, line.operands, line.attributes = f"{line.op}-done", [f"%{start.name}"], []
    return True


@noise(NEUTRAL)
def made_synchronous(text: Text, rng: Random) -> bool:
    """A pair of start and done becomes one operation."""
    options = [(b, x) for b, x in text.live() if x.op in {f"{a}-done" for a in ASYNC} and x.dtype]
    if not options:
        return False
    block, line = rng.choice(options)
    start = block.by_name()[line.takes[0]]
    line.op, line.operands = line.op.removesuffix("-done"), [*start.operands]
    line.attributes = [a for a in start.attributes if not a.startswith("output_to_operand")]
    block.lines.remove(start)
    return True
