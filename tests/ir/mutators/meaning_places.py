"""Changes of meaning in HLO text: collectives, shardings, memory, hosts, donation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.ir.mutators.groups import groups_of, spellings, tiles
from tests.ir.mutators.meaning import numbers_of, pick, put_numbers
from tests.ir.mutators.registry import meaning
from tests.ir.mutators.text import COMMENT, Line, logical, split

if TYPE_CHECKING:
    from random import Random

    from tests.ir.mutators.text import Block, Text

COLLECTIVE = re.compile(r"(all-|collective-|reduce-scatter|ragged-)(?!.*-done$)")
WHOLE = {"all-reduce", "collective-permute"}
PAIRS = "{{0,1},{1,0}}"


def outside(text: Text) -> set[str]:
    """Return the computations in which collectives can stand: the entry and what loops run."""
    bodies = [str(x.get("body")).lstrip("%") for _, x in text.live() if x.op == "while"]
    return {text.entry.name, *bodies}


def inner_type(block: Block, line: Line) -> str:
    """Return the type that users of a collective see, also of one in two halves."""
    done = next((x for x, _ in block.users(line.name) if x.op.endswith("-done")), line)
    return done.type


# Collectives


@meaning
def collective_added(text: Text, rng: Random) -> bool:
    """A value is sent around before its users get it."""
    ops = {"fusion", "dot", "add", "multiply", "parameter", "convert", "get-tuple-element", "copy"}
    found = pick(text, rng, lambda _, x: x.dtype and not x.root and x.op in ops, outside(text))
    if not found:
        return False
    block, line = found
    new = line.copy(name=text.fresh("collective-permute"), op="collective-permute")
    new.operands = [f"%{line.name}"]
    new.attributes = ["channel_id=771", f"source_target_pairs={PAIRS}"]
    block.replace(line.name, new.name)
    block.insert_after(line, new)
    return True


@meaning
def reduction_added(text: Text, rng: Random) -> bool:
    """A value is reduced over all devices before its users get it."""
    known = [(b, x) for b, x in text.live() if x.op == "all-reduce" and x.dtype]
    if not known:
        return False
    _, model = rng.choice(known)
    found = pick(
        text, rng, lambda _, x: x.dtype == model.dtype and not x.root and x.op != "constant",
        outside(text),
    )  # fmt: skip
    if not found:
        return False
    block, line = found
    new = model.copy(name=text.fresh("all-reduce"), type=line.type, operands=[f"%{line.name}"])
    new.put("channel_id", "772")
    block.replace(line.name, new.name)
    block.insert_after(line, new)
    return True


@meaning
def collective_removed(text: Text, rng: Random) -> bool:
    """A collective that keeps the shape is not done."""

    def whole(block: Block, line: Line) -> bool:
        base = line.op.removesuffix("-start")
        if base not in WHOLE or len(line.takes) != 1 or (line.root and base == line.op):
            return False
        return base == line.op or any(
            x.op == f"{base}-done" and not x.root for x, _ in block.users(line.name)
        )

    found = pick(text, rng, whole)
    if not found:
        return False
    block, line = found
    done = next((x for x, _ in block.users(line.name) if x.op.endswith("-done")), line)
    block.replace(done.name, line.takes[0])
    block.lines = [x for x in block.lines if x not in {line, done}]
    return True


@meaning
def collective_duplicated(text: Text, rng: Random) -> bool:
    """A collective is done twice side by side; a user gets one of the two, or both."""
    found = pick(
        text, rng,
        lambda _, x: COLLECTIVE.match(x.op) and x.dtype and not x.root and "-start" not in x.op,
    )  # fmt: skip
    if not found:
        return False
    block, line = found
    new = line.copy(name=text.fresh(line.op))
    new.put("channel_id", "773")
    users = block.users(line.name)
    if len(users) > 1:
        user, i = rng.choice(users)
        user.rewire(line.name, new.name, i)
        block.insert_after(line, new)
        return True
    both = line.copy(name=text.fresh("maximum"), op="maximum", attributes=[])
    both.operands = [f"%{line.name}", f"%{new.name}"]
    block.replace(line.name, both.name)
    block.insert_after(line, new, both)
    return True


@meaning
def collective_repeated(text: Text, rng: Random) -> bool:
    """A collective that keeps the shape is done twice."""
    found = pick(text, rng, lambda _, x: x.op in WHOLE and x.dtype and not x.root)
    if not found:
        return False
    block, line = found
    new = line.copy(name=text.fresh(line.op), operands=[f"%{line.name}"])
    new.put("channel_id", "774")
    block.replace(line.name, new.name, keep=new)
    block.insert_after(line, new)
    return True


@meaning
def collective_regrouped(text: Text, rng: Random) -> bool:
    """A collective has other groups."""
    found = pick(text, rng, lambda _, x: x.get("replica_groups") not in {None, "{}"})
    if not found:
        return False
    line = found[1]
    groups = groups_of(str(line.get("replica_groups")))
    flat = sorted(n for group in groups for n in group)
    if len(groups) == 1:
        others = [[tuple(flat[::2]), tuple(flat[1::2])], [tuple(flat[:2]), tuple(flat[2:])]]
    else:
        others = [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)], [tuple(flat)]]
    new = rng.choice([o for o in others if sorted(o) != sorted(groups)])
    line.put("replica_groups", rng.choice(spellings(new)))
    return True


@meaning
def members_reordered(text: Text, rng: Random) -> bool:
    """The members of a group come in another order, where the result depends on it."""
    ops = {"all-gather", "all-gather-start", "all-to-all", "all-to-all-start", "reduce-scatter"}
    found = pick(text, rng, lambda _, x: x.op in ops and x.get("replica_groups"))
    if not found:
        return False
    groups = groups_of(str(found[1].get("replica_groups")))
    found[1].put("replica_groups", spellings([tuple(reversed(g)) for g in groups])[0])
    return True


@meaning
def collective_type_changed(text: Text, rng: Random) -> bool:
    """A collective is one of another kind."""
    other = {
        "all-reduce": "collective-broadcast",
        "all-gather": "all-to-all",
        "all-to-all": "all-gather",
    }
    other |= {"reduce-scatter": "all-to-all"}
    found = pick(text, rng, lambda _, x: x.op in other)
    if not found:
        return False
    line = found[1]
    line.op = other[line.op]
    for key in ("to_apply", "use_global_device_ids"):
        line.put(key, None)
    return True


@meaning
def gathered_dimension_changed(text: Text, rng: Random) -> bool:
    """A collective puts its parts along another dimension."""
    ops = {"all-gather", "all-gather-start", "reduce-scatter", "reduce-scatter-start", "all-to-all"}

    def free(block: Block, line: Line) -> list[int]:
        if line.op not in ops or not line.get("dimensions"):
            return []
        rank = len(block.by_name()[line.takes[0]].shape)
        return [i for i in range(rank) if i not in numbers_of(line, "dimensions")]

    found = pick(text, rng, free)
    if found:
        put_numbers(found[1], "dimensions", [rng.choice(free(*found))])
    return found is not None


@meaning
def pairs_changed(text: Text, rng: Random) -> bool:
    """A permute sends to others, or one device fewer sends."""
    found = pick(text, rng, lambda _, x: x.get("source_target_pairs"))
    if not found:
        return False
    pairs = re.findall(r"\{(\d+),(\d+)\}", str(found[1].get("source_target_pairs")))
    turned = [(b, a) for a, b in pairs]
    fewer = pairs[:-1] if len(pairs) > 1 else turned
    new = rng.choice([turned, fewer])
    found[1].put("source_target_pairs", "{" + ",".join(f"{{{a},{b}}}" for a, b in new) + "}")
    return True


@meaning
def device_ids_changed(text: Text, rng: Random) -> bool:
    """The numbers in a collective's groups are no longer those of devices."""
    found = pick(text, rng, lambda _, x: x.get("use_global_device_ids"))
    if found:
        found[1].put("use_global_device_ids", None)
    return found is not None


# Shardings, memory, hosts, donation


@meaning
def sharding_changed(text: Text, rng: Random) -> bool:
    """A parameter of the entry is sharded otherwise."""
    options = [p for p in text.entry.parameters() if p.get("sharding")]
    if not options:
        return False
    line = rng.choice(options)
    value, rank = str(line.get("sharding")), max(1, len(line.shape))
    known = tiles(value[1:]) or "{'" in value
    ones = ",".join(["1"] * (rank - 1))
    new = f"{{devices=[4{',' * bool(ones)}{ones}]<=[4]}}"
    line.put("sharding", "{replicated}" if known else new)
    shardy = line.get("frontend_attributes") or ""
    if "xla.sdy.sharding" in shardy:
        kept = [p for p in split(shardy[1:-1]) if not p.startswith("xla.sdy.sharding")]
        line.put("frontend_attributes", "{" + ",".join(kept) + "}" if kept else None)
    return True


@meaning
def tiles_reordered(text: Text, rng: Random) -> bool:
    """A parameter's tiles are on other devices."""
    options = [p for p in text.entry.parameters() if tiles((p.get("sharding") or " ")[1:])]
    if not options:
        return False
    line = rng.choice(options)
    value = str(line.get("sharding"))
    sizes, devices = tiles(value[1:]) or ([], [])
    tail = re.sub(r"^\{devices=\[[\d,]+\](?:<=\[[\d,]+\](?:T\([\d,]+\))?|[\d,]+)", "", value)
    turned = devices[1:] + devices[:1]
    body = f"devices=[{','.join(map(str, sizes))}]{','.join(map(str, turned))}"
    line.put("sharding", "{" + body + tail)
    return True


@meaning
def host_mark_lost(text: Text, rng: Random) -> bool:
    """What was marked to be computed on the host is not."""
    found = pick(
        text, rng, lambda _, x: "_xla_compute_type" in (x.get("frontend_attributes") or "")
    )
    if not found:
        return False
    parts = split(str(found[1].get("frontend_attributes"))[1:-1])
    kept = [p for p in parts if "_xla_compute_type" not in p]
    found[1].put("frontend_attributes", "{" + ",".join(kept) + "}" if kept else None)
    return True


@meaning
def host_thread_lost(text: Text, rng: Random) -> bool:
    """A computation does not run on the host's thread."""
    options = [b for b in text.blocks if any("execution_thread" in row for row in b.footer)]
    if not options:
        return False
    for block in options:
        block.footer = [re.sub(r', execution_thread="\w+"', "", row) for row in block.footer]
    for _, line in text.lines():
        line.put("async_execution_thread", None)
    return True


@meaning
def parameter_memory_changed(text: Text, rng: Random) -> bool:
    """A parameter of the entry is in another memory; on CPU the header alone says so."""
    line = rng.choice([p for p in text.entry.parameters() if p.dtype] or [text.entry.root])
    if line.op != "parameter":
        return False
    number = int(line.operands[0])
    before = str(text)
    if any("S(" in x.type for _, x in text.lines()):
        line.type = moved(line.type)
    layout = str(text.header("entry_computation_layout"))
    inside, arrow, out = layout[1:-1].partition(")->")
    types = split(inside[1:])
    types[number] = moved(types[number])
    text.head[0] = text.head[0].replace(layout, "{(" + ", ".join(types) + arrow + out + "}")
    return str(text) != before


def moved(type_: str) -> str:
    """Return a type in the host's memory, or on the device if it was there."""
    if re.search(r"S\(\d+\)", type_):
        return re.sub(r":?S\(\d+\)", "", type_)
    if "}" not in type_:
        return f"{type_}{{:S(5)}}"
    return type_[:-1] + ("S(5)}" if ":" in type_ else ":S(5)}")


@meaning
def donation_removed(text: Text, rng: Random) -> bool:
    """An argument is no longer donated."""
    value = text.header("input_output_alias")
    if value is None:
        return False
    parts = split(value[1:-1].strip())
    parts.pop(rng.randrange(len(parts)))
    text.put_header("input_output_alias", "{ " + ", ".join(parts) + " }" if parts else None)
    return True


@meaning
def donation_added(text: Text, rng: Random) -> bool:
    """One more argument is donated."""
    value = text.header("input_output_alias")
    held = re.findall(r"\((\d+),", value or "")
    free = [p.operands[0] for p in text.entry.parameters() if p.operands[0] not in held]
    if not free:
        return False
    outputs = len(text.entry.root.takes) if text.entry.root.op == "tuple" else 0
    used = re.findall(r"\{(\d*)\}: ", value or "")
    open_ = [str(i) for i in range(outputs) if str(i) not in used] if outputs else [""] * (not used)
    if not open_:
        return False
    new = f"{{{rng.choice(open_)}}}: ({rng.choice(free)}, {{}}, may-alias)"
    parts = [*split((value or "{}")[1:-1].strip()), new]
    text.put_header("input_output_alias", "{ " + ", ".join(parts) + " }")
    return True


@meaning
def donation_forced(text: Text, rng: Random) -> bool:
    """An argument must be donated that only might be."""
    value = text.header("input_output_alias")
    if value is not None:
        text.put_header("input_output_alias", value.replace("may-alias", "must-alias", 1))
    return value is not None


@meaning
def devices_counted(text: Text, rng: Random) -> bool:
    """The module is for another number of devices."""
    value = text.header("num_partitions")
    text.put_header("num_partitions", "8" if value != "8" else "2")
    return True


@meaning
def result_memory_changed(text: Text, rng: Random) -> bool:
    """A result of the entry is in another memory."""
    layout = str(text.header("entry_computation_layout"))
    inside, arrow, out = layout[1:-1].partition(")->")
    types = split(out[1:-1]) if out.startswith("(") else [out]
    number = rng.randrange(len(types))
    comment = COMMENT.match(types[number])
    types[number] = (comment[0] if comment else "") + moved(COMMENT.sub("", types[number]))
    new = f"({', '.join(types)})" if out.startswith("(") else types[0]
    text.head[0] = text.head[0].replace(layout, "{" + inside + arrow + new + "}")
    return True


@meaning
def donation_moved(text: Text, rng: Random) -> bool:
    """Another argument is donated instead."""
    value = text.header("input_output_alias") or ""
    held = re.findall(r"\((\d+),", value)
    free = [p.operands[0] for p in text.entry.parameters() if p.operands[0] not in held]
    if not held or not free:
        return False
    old, new = rng.choice(held), rng.choice(free)
    text.put_header("input_output_alias", value.replace(f"({old},", f"({new},", 1))
    return True


@meaning
def parameter_narrowed(text: Text, rng: Random) -> bool:
    """A parameter of the entry comes as bf16 and is converted."""
    options = [p for p in text.entry.parameters() if p.dtype == "f32" and not p.root]
    if not options:
        return False
    line = rng.choice(options)
    number = int(line.operands[0])
    wide = line.copy(
        name=text.fresh("convert"), op="convert", operands=[f"%{line.name}"], attributes=[]
    )
    text.entry.replace(line.name, wide.name)
    line.type = line.type.replace("f32", "bf16", 1)
    text.entry.insert_after(line, wide)
    layout = str(text.header("entry_computation_layout"))
    inside, arrow, out = layout[1:-1].partition(")->")
    types = split(inside[1:])
    types[number] = types[number].replace("f32", "bf16", 1)
    text.head[0] = text.head[0].replace(layout, "{(" + ", ".join(types) + arrow + out + "}")
    name = re.escape(line.name)
    text.entry.rest = re.sub(rf"\b{name}: f32", f"{line.name}: bf16", text.entry.rest, count=1)
    return logical(line.type).startswith("bf16")
