"""Noise in HLO text: names, order, metadata, tables. What it returns means the same."""

from __future__ import annotations

import json
import re
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from tests.ir.mutators.referee import COSTS
from tests.ir.mutators.registry import noise
from tests.ir.mutators.text import Block, split

if TYPE_CHECKING:
    from random import Random

    from tests.ir.mutators.text import Text

ORDERED = re.compile(
    r"all-|collective-|reduce-scatter|ragged-|custom-call|infeed|outfeed|send|recv|rng|copy-start|call$"
)
"""What keeps its order among its like."""
WORDS = ("fusion", "wide", "input", "psum", "jit_f", "x", "a-b", "region", "copy", "while", "ROOTS")


# Names


def new_names(old: list[str], rng: Random) -> dict[str, str]:
    """Return other names, all different, in the spellings that XLA uses."""
    numbers = rng.sample(range(10 * len(old) + 10), len(old))
    ends = ("", ".clone", ".clone.1", "_spmd", ".remat")
    return {
        name: f"{rng.choice(WORDS)}.{n}{rng.choice(ends)}"
        for name, n in zip(old, numbers, strict=True)
    }


def rename(block: Block, renamed: dict[str, str]) -> None:
    """Rename instructions of one computation, also in its header."""
    for line in block.lines:
        for i, name in enumerate(line.takes):
            if name in renamed:
                kept = line.operands[i][: len(line.operands[i]) - len(name)]
                line.operands[i] = kept + renamed[name]
        line.name = renamed.get(line.name, line.name)
        before = line.get("control-predecessors")
        if before:
            names = [n.strip().lstrip("%") for n in before[1:-1].split(",")]
            after = ", ".join("%" + renamed.get(n, n) for n in names)
            line.put("control-predecessors", f"{{{after}}}")
    inside, arrow, out = block.rest.partition(") -> ")
    inside = re.sub(r"(?<=[(, /])([\w.\-]+)(?=: )", lambda m: renamed.get(m[1], m[1]), inside)
    block.rest = inside + arrow + out


@noise()
def instructions_renamed(text: Text, rng: Random) -> bool:
    """Every instruction has another name."""
    names = new_names([line.name for _, line in text.lines()], rng)
    for block in text.blocks:
        rename(block, {line.name: names[line.name] for line in block.lines})
    return True


@noise()
def parameters_renamed(text: Text, rng: Random) -> bool:
    """Every parameter has another name."""
    taken = {line.name for _, line in text.lines()}
    for number, block in enumerate(text.blocks):
        new = {p.name: f"Arg_{i}.{number + 9000}" for i, p in enumerate(block.parameters())}
        rename(block, {old: name for old, name in new.items() if name not in taken})
    return True


@noise()
def computations_renamed(text: Text, rng: Random) -> bool:
    """Every computation has another name, fusions' too."""
    names = new_names([block.name for block in text.blocks], rng)
    for block in text.blocks:
        block.name = names[block.name]
        for line in block.lines:
            line.recall(names)
    return True


@noise()
def fusions_renamed(text: Text, rng: Random) -> bool:
    """Fusions and what they call are named by another scheme."""
    found = {
        callee: f"fused_{rng.choice(WORDS)}.{i + 4000}"
        for i, (_, line) in enumerate(text.lines())
        if line.op == "fusion"
        for callee in line.callees()
    }
    for block in text.blocks:
        block.name = found.get(block.name, block.name)
        for line in block.lines:
            line.recall(found)
        fusions = [line.name for line in block.lines if line.op == "fusion"]
        rename(block, {name: f"loop_fusion.{i}.{block.name}" for i, name in enumerate(fusions)})
    return bool(found)


@noise()
def module_renamed(text: Text, rng: Random) -> bool:
    """The module has another name."""
    text.head[0] = re.sub(
        r"^HloModule [^,\s]+", f"HloModule jit_{rng.choice(WORDS)}.3", text.head[0]
    )
    return True


# Order


def shuffled_order(before: dict[int, set[int]], rng: Random) -> list[int]:
    """Return a random order in which each number comes after those it needs."""
    sorter = TopologicalSorter(before)
    sorter.prepare()
    ready: list[int] = []
    order = []
    while sorter.is_active():
        ready += sorter.get_ready()
        order.append(ready.pop(rng.randrange(len(ready))))
        sorter.done(order[-1])
    return order


@noise()
def instructions_reordered(text: Text, rng: Random) -> bool:
    """Independent instructions stand in another order; what communicates keeps its own."""
    for block in text.blocks:
        at = {line.name: i for i, line in enumerate(block.lines)}
        needs: dict[int, set[int]] = {}
        last = None
        for i, line in enumerate(block.lines):
            before = re.findall(r"[\w.\-]+", line.get("control-predecessors") or "")
            needs[i] = {at[name] for name in (*line.takes, *before)}
            if ORDERED.match(line.op):
                needs[i] |= {last} if last is not None else set()
                last = i
        block.lines = [block.lines[i] for i in shuffled_order(needs, rng)]
    return True


@noise()
def computations_reordered(text: Text, rng: Random) -> bool:
    """Computations stand in another order, called ones before their callers."""
    at = {block.name: i for i, block in enumerate(text.blocks)}
    needs = {
        i: {at[n] for line in block.lines for n in line.callees()}
        for i, block in enumerate(text.blocks)
    }
    ends = [tuple(block.footer) for block in text.blocks]
    if len(text.blocks) < 3 or any("thread" in "".join(e) for e in ends):
        return False
    text.blocks = [text.blocks[i] for i in shuffled_order(needs, rng)]
    for block, end in zip(text.blocks, ends, strict=True):
        block.footer = list(end)
    return True


@noise()
def attributes_reordered(text: Text, rng: Random) -> bool:
    """Attributes stand in another order."""
    for _, line in text.lines():
        rng.shuffle(line.attributes)
    return True


def anonymous(block: Block) -> str:
    """Return a computation's text with its instructions numbered, without metadata."""
    copy = Block(False, "", "", block.rest, [], [*block.footer])
    copy.lines = [line.copy(root=line.root) for line in block.lines]
    rename(copy, {line.name: f"_{i}" for i, line in enumerate(block.lines)})
    for line in copy.lines:
        line.put("metadata", None)
        line.put("backend_config", None)
    return str(copy)


@noise()
def computations_merged(text: Text, rng: Random) -> bool:
    """Callers of two computations that are the same call one of them."""
    first: dict[str, str] = {}
    merged: dict[str, str] = {}
    for block in text.blocks:
        name = first.setdefault(anonymous(block), block.name)
        if name != block.name and not block.entry:
            merged[block.name] = name
    for _, line in text.lines():
        line.recall(merged)
    text.blocks = [block for block in text.blocks if block.name not in merged]
    return bool(merged)


@noise()
def computation_nobody_calls(text: Text, rng: Random) -> bool:
    """There is one more computation, which nobody calls."""
    known = [
        b for b in text.blocks if not b.entry and len(b.lines) < 8 and "thread" not in str(b.footer)
    ]
    if not known:
        return False
    old = rng.choice(known)
    new = Block(False, old.sign, text.fresh("dead"), old.rest, [], [*old.footer])
    new.lines = [line.copy(root=line.root) for line in old.lines]
    rename(new, {line.name: text.fresh(f"{line.name}.d") for line in new.lines})
    text.blocks.insert(text.blocks.index(old) + 1, new)
    return True


# Metadata and tables


@noise()
def metadata_removed(text: Text, rng: Random) -> bool:
    """There is no metadata, and there are no tables of places."""
    del text.head[
        next((i for i, row in enumerate(text.head) if row == "FileNames"), len(text.head)) :
    ]
    for _, line in text.lines():
        line.put("metadata", None)
    text.head += [] if text.head[-1] == "" else [""]
    return True


@noise()
def metadata_changed(text: Text, rng: Random) -> bool:
    """Names of operations, lines and columns are other ones."""
    for _, line in text.lines():
        value = line.get("metadata")
        if value is None:
            continue
        value = re.sub(
            r'op_name="(?:[^"\\]|\\.)*"', f'op_name="jit(g)/{rng.choice(WORDS)}/{{}}"', value
        )
        value = re.sub(r"(line|column)=\d+", lambda m: f"{m[1]}={rng.randrange(1, 999)}", value)
        value = re.sub(r' scheduling_name="[^"]*"', "", value)
        line.put("metadata", value)
    return True


@noise()
def metadata_added(text: Text, rng: Random) -> bool:
    """What had no metadata has some, with all that can be in it."""
    for _, line in text.lines():
        if line.get("metadata") is None and rng.random() < 0.5:
            where = 'source_file="/src/a b.py" source_line=3 source_end_line=4'
            what = 'op_type="add" op_name="jit(f)/a=%b{c, d=[e]} \\"q\\""'
            line.put("metadata", f'{{{what} {where} deduplicated_name="fusion.3"}}')
    return True


@noise()
def source_file_moved(text: Text, rng: Random) -> bool:
    """The program lies elsewhere."""
    old, new = "/src/programs.py", f"/home/u/{rng.choice(WORDS)}/deep er/p.py"
    text.head = [row.replace(old, new) for row in text.head]
    for _, line in text.lines():
        value = line.get("metadata")
        if value is not None:
            line.put("metadata", value.replace(old, new))
    return True


def renumbered(head: list[str], table: str, key: str, rng: Random) -> bool:
    """Renumber one table of the header and what refers to it as `key`."""
    if table not in head:
        return False
    start = head.index(table) + 1
    end = head.index("", start)
    new = list(range(1, end - start + 1))
    rng.shuffle(new)
    ids = {row.split(" ", 1)[0]: str(n) for row, n in zip(head[start:end], new, strict=True)}
    rows = [(int(ids[r.split(" ", 1)[0]]), r.split(" ", 1)[1]) for r in head[start:end]]
    head[start:end] = [f"{n} {rest}" for n, rest in sorted(rows)]
    for i, row in enumerate(head):
        head[i] = re.sub(rf"\b{key}=(\d+)", lambda m: f"{key}={ids.get(m[1], m[1])}", row)
    return True


@noise()
def tables_renumbered(text: Text, rng: Random) -> bool:
    """The tables of files, functions and places have other numbers."""
    done = renumbered(text.head, "FileNames", "file_name_id", rng)
    renumbered(text.head, "FunctionNames", "function_name_id", rng)
    renumbered(text.head, "FileLocations", "file_location_id", rng)
    return done


@noise()
def frames_shifted(text: Text, rng: Random) -> bool:
    """Every instruction has another stack."""
    if "StackFrames" not in text.head:
        return False
    start = text.head.index("StackFrames") + 1
    count = text.head.index("", start) - start
    for _, line in text.lines():
        value = line.get("metadata")
        if value is not None:
            frame = f"stack_frame_id={rng.randrange(1, count + 1)}"
            line.put("metadata", re.sub(r"stack_frame_id=\d+", frame, value))
    return True


@noise()
def blank_lines(text: Text, rng: Random) -> bool:
    """There are more blank lines between computations."""
    for block in text.blocks:
        block.footer += [""] * rng.randrange(3)
    return True


# Headers, channels, backends


@noise()
def schedule_flag(text: Text, rng: Random) -> bool:
    """The module is said to be scheduled, or not."""
    text.put_header("is_scheduled", None if text.header("is_scheduled") else "true")
    return True


@noise()
def header_fingerprint(text: Text, rng: Random) -> bool:
    """A fingerprint that a backend leaves in the header is another one."""
    old = text.head[0]
    text.head[0] = re.sub(
        r'fingerprint_before_lhs="\w+"', f'fingerprint_before_lhs="{rng.randrange(1 << 64):x}"', old
    )
    return text.head[0] != old


@noise()
def channels_renumbered(text: Text, rng: Random) -> bool:
    """Channels have other numbers, what shared one shares one."""
    used = sorted({c for _, line in text.lines() if (c := line.get("channel_id"))})
    new = dict(zip(used, rng.sample(range(1, 90 + len(used)), len(used)), strict=True))
    for _, line in text.lines():
        if (channel := line.get("channel_id")) is not None:
            line.put("channel_id", str(new[channel]))
    return bool(used)


def shuffled_keys(value: object, rng: Random) -> object:
    """Return JSON whose objects have their keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled_keys(value[key], rng) for key in keys}
    if isinstance(value, list):
        return [shuffled_keys(v, rng) for v in value]
    return value


@noise()
def backend_keys_reordered(text: Text, rng: Random) -> bool:
    """The keys of backend configurations stand in another order."""
    found = False
    for _, line in text.lines():
        value = line.get("backend_config")
        if value is not None and value.startswith('{"'):
            new = json.dumps(shuffled_keys(json.loads(value), rng), separators=(",", ":"))
            line.put("backend_config", new)
            found = True
    return found


@noise()
def backend_costs(text: Text, rng: Random) -> bool:
    """What backends note about costs, schedules and tuning is not there, or another number."""
    found = False
    for _, line in text.lines():
        value = line.get("backend_config")
        if value is None or not value.startswith('{"'):
            continue
        config = json.loads(value)
        for key in [k for k in config if k in COSTS]:
            found = True
            if rng.random() < 0.5:
                del config[key]
        if "outer_dimension_partitions" in config:
            config["outer_dimension_partitions"] = [str(rng.randrange(2, 65))]
        line.put("backend_config", json.dumps(config, separators=(",", ":")))
    return found


@noise()
def backend_partitions(text: Text, rng: Random) -> bool:
    """The compiler saw another number of cores."""
    found = False
    for _, line in text.lines():
        value = line.get("backend_config")
        if value is not None and "outer_dimension_partitions" in value:
            new = f'"outer_dimension_partitions":["{rng.randrange(2, 65)}"]'
            line.put(
                "backend_config", re.sub(r'"outer_dimension_partitions":\[[^\]]*\]', new, value)
            )
            found = True
    return found


@noise()
def header_attributes_reordered(text: Text, rng: Random) -> bool:
    """The attributes of the module stand in another order."""
    name, *rest = split(text.head[0])
    rng.shuffle(rest)
    text.head[0] = ", ".join([name, *rest])
    return len(rest) > 1
