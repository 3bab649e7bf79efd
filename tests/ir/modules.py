"""Programs made at random, and the many ways of writing one down as HLO.

A `Program` says what is computed, a `Noise` how it is written: names, order, tuples, fusions,
copies. Every value is an `f32[4]`; a block refers to a value by the number of the node and of
its result, its parameters come first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Ref = tuple[int, int]
F32, S32, PRED = "f32[4]{0}", "s32[]", "pred[]"
UNARY = ("negate", "exponential", "sine")
COMMUTATIVE = ("add", "multiply", "maximum")
ORDERED = ("subtract", "divide")
COLLECTIVES = ("all-reduce", "collective-permute")
IMPURE = (*COLLECTIVES, "custom-call")
GROUPS = ("{{0,1},{2,3}}", "{{0,1,2,3}}")


@dataclass(frozen=True)
class Node:
    """One operation; `alias` is none at all, it stands for its operand.

    Attributes:
        op: What it does; `choose` is the lesser of two values, by a comparison.
        operands: What it takes; a loop takes first what it carries, then what it only reads.
        detail: The value of a constant, the groups of a collective, how often a loop runs.
        reducer: What an all-reduce reduces with.
        bodies: The step of a loop, the branches of a conditional.
    """

    op: str
    operands: tuple[Ref, ...] = ()
    detail: str = ""
    reducer: str = "add"
    bodies: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Block:
    """Nodes, and what they return."""

    parameters: int
    nodes: tuple[Node, ...]
    results: tuple[Ref, ...]

    def node(self, ref: Ref) -> Node | None:
        """Return the node of a reference, None for a parameter."""
        return None if ref[0] < self.parameters else self.nodes[ref[0] - self.parameters]


@st.composite
def programs(draw: st.DrawFn, *, tidy: bool = False, depth: int = 2) -> Block:
    """Draw a program of two parameters.

    Args:
        draw: Of hypothesis.
        tidy: Whether every value is read, so that a change of any is a change of the whole.
        depth: How deeply loops and branches may nest.
    """
    return _block(draw, 2, draw(st.integers(1, 3)), tidy=tidy, depth=depth)


def _block(draw: st.DrawFn, parameters: int, results: int, *, tidy: bool, depth: int) -> Block:
    values: list[Ref] = [(n, 0) for n in range(parameters)]
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, 5))):
        node = _node(draw, values, tidy=tidy, depth=depth)
        number = parameters + len(nodes)
        nodes.append(node)
        count = len(node.bodies[0].results) if node.bodies else 1
        values += [(number, k) for k in range(count)]
    if not tidy:
        returned = tuple(draw(st.sampled_from(values)) for _ in range(results))
        return Block(parameters, tuple(nodes), returned)
    read = {ref for node in nodes for ref in node.operands}
    rest = [ref for ref in values if ref not in read]
    while len(rest) > results:
        nodes.append(Node("subtract", (rest[-1], rest[-2])))
        rest[-2:] = [(parameters + len(nodes) - 1, 0)]
    while len(rest) < results or any(ref[0] < parameters for ref in rest):
        # A result of a loop that is its parameter would be no result at all.
        source = next((ref for ref in rest if ref[0] < parameters), rest[0])
        nodes.append(Node("tanh", (source,)))
        made = (parameters + len(nodes) - 1, 0)
        rest = [*(ref for ref in rest if ref != source or ref[0] >= parameters), made]
    return Block(parameters, tuple(nodes), tuple(rest))


def _node(draw: st.DrawFn, values: list[Ref], *, tidy: bool, depth: int) -> Node:
    def value() -> Ref:
        return draw(st.sampled_from(values))

    kinds = [*UNARY, *COMMUTATIVE, *ORDERED, "choose", "constant", *IMPURE]
    op = draw(st.sampled_from([*kinds, "while", "while", "conditional"] if depth else kinds))
    if op == "constant":
        return Node(op, detail=str(draw(st.integers(1, 3))))
    if op == "all-reduce":
        reducer = draw(st.sampled_from(("add", "maximum")))
        return Node(op, (value(),), draw(st.sampled_from(GROUPS)), reducer)
    if op == "while":
        carried, read = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        step = _block(draw, carried + read, carried, tidy=tidy, depth=depth - 1)
        operands = tuple(value() for _ in range(carried + read))
        return Node(op, operands, str(draw(st.integers(2, 3))), bodies=(step,))
    if op == "conditional":
        given, results = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        branches = tuple(_block(draw, given, results, tidy=tidy, depth=depth - 1) for _ in range(2))
        return Node(op, tuple(value() for _ in range(given)), bodies=branches)
    two = op in {*COMMUTATIVE, *ORDERED, "choose"}
    return Node(op, (value(), value()) if two else (value(),))


class Noise:
    """What one writer does and another does not; without a seed nothing out of the ordinary."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = None if seed is None else Random(seed)  # noqa: S311 - reproducible

    def likes(self, chance: float = 0.3) -> bool:
        """Say whether to do something."""
        return self._random is not None and self._random.random() < chance

    def shuffled(self, count: int) -> list[int]:
        """Return numbers below a count in some order."""
        numbers = list(range(count))
        if self._random is not None:
            self._random.shuffle(numbers)
        return numbers


def written(program: Block, seed: int | None = None) -> str:
    """Return a program as HLO, written as a seed says; without one, plainly."""
    return _Writer(Noise(seed)).module(program)


class _Writer:
    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._computations: list[str] = []
        self._lines: list[str] = []
        self._names = 0

    def module(self, program: Block) -> str:
        self._lines = []
        given = [self._line(F32, f"parameter({n})") for n in range(program.parameters)]
        self._return([F32] * len(program.results), self._block(program, given))
        entry = "\n".join(["ENTRY %main {", *self._lines, "}"])
        return "\n\n".join(["HloModule m", *self._computations, entry]) + "\n"

    def _line(self, type_: str, text: str) -> str:
        self._names += 1
        name = f"%{text.partition('(')[0]}.{self._names}"
        self._lines.append(f"  {name} = {type_} {text}")
        return name

    def _return(self, types: list[str], values: list[str]) -> None:
        self._root(self._line(_tuple_type(types), f"tuple({', '.join(values)})"))

    def _root(self, name: str) -> None:
        """Mark the last line, which has this name, as the result."""
        assert f" {name} = " in self._lines[-1]
        self._lines[-1] = "  ROOT" + self._lines[-1][1:]

    def _computation(self, write: Callable[[], None]) -> str:
        """Write a computation of its own; return its name."""
        outer, self._lines = self._lines, []
        write()
        self._names += 1
        name = f"%computation.{self._names}"
        self._computations.append("\n".join([f"{name} {{", *self._lines, "}"]))
        self._lines = outer
        return name

    def _block(
        self, block: Block, given: list[str], known: dict[int, str] | None = None
    ) -> list[str]:
        """Write nodes in some order; return the names of the results."""
        names: dict[Ref, str] = {(n, 0): name for n, name in enumerate(given)}
        for number, name in (known or {}).items():
            names[number, 0] = name
        todo = [n + block.parameters for n in self._noise.shuffled(len(block.nodes))]
        while todo:
            for number in list(todo):
                node = block.nodes[number - block.parameters]
                if (number, 0) not in names and not all(ref in names for ref in node.operands):
                    continue
                todo.remove(number)
                if (number, 0) not in names:
                    made = self._node(node, [self._detour(names[ref]) for ref in node.operands])
                    names.update({(number, k): name for k, name in enumerate(made)})
        return [self._detour(names[ref]) for ref in block.results]

    def _detour(self, name: str) -> str:
        """Return another name for a value: a copy, an element of a tuple."""
        if self._noise.likes(0.1):
            name = self._line(F32, f"copy({name})")
        if self._noise.likes(0.1):
            pair = self._line(f"({F32}, {F32})", f"tuple({name}, {name})")
            name = self._line(F32, f"get-tuple-element({pair}), index=1")
        return name

    def _node(self, node: Node, operands: list[str]) -> list[str]:
        if node.op == "alias":
            return operands
        if node.op == "while":
            return self._while(node, operands)
        if node.op == "conditional":
            return self._conditional(node, operands)
        if node.op not in IMPURE and self._noise.likes(0.1):
            self._simple(node, operands)  # done twice
        if self._noise.likes(0.2):
            return [self._outlined(node, operands)]
        return [self._simple(node, operands)]

    def _simple(self, node: Node, operands: list[str]) -> str:
        op = node.op
        if op == "constant":
            return self._line(F32, f"constant({{{', '.join([node.detail] * 4)}}})")
        if op in COMMUTATIVE and self._noise.likes(0.5):
            operands = [*reversed(operands)]
        if op == "choose":
            left, right = operands if not self._noise.likes(0.5) else operands[::-1]
            direction = "LT" if left == operands[0] else "GT"
            less = self._line("pred[4]{0}", f"compare({left}, {right}), direction={direction}")
            return self._line(F32, f"select({less}, {operands[0]}, {operands[1]})")
        if op in COLLECTIVES:
            return self._collective(node, operands[0])
        extra = ', custom_call_target="f", custom_call_has_side_effect=true'
        return self._line(F32, f"{op}({', '.join(operands)}){extra if op == 'custom-call' else ''}")

    def _collective(self, node: Node, operand: str) -> str:
        type_, extra = F32, f"replica_groups={node.detail}, to_apply={self._reducer(node.reducer)}"
        if node.op == "collective-permute":
            extra = "source_target_pairs={{0,1},{1,0}}" if not node.detail else node.detail
        if not self._noise.likes(0.4):
            return self._line(type_, f"{node.op}({operand}), channel_id={self._names}, {extra}")
        half = f"({F32}, {F32})" if node.op == "collective-permute" else F32
        start = self._line(half, f"{node.op}-start({operand}), channel_id={self._names}, {extra}")
        return self._line(F32, f"{node.op}-done({start})")

    def _reducer(self, op: str) -> str:
        def write() -> None:
            a, b = (self._line("f32[]", f"parameter({n})") for n in range(2))
            self._root(self._line("f32[]", f"{op}({a}, {b})"))

        return self._computation(write)

    def _outlined(self, node: Node, operands: list[str]) -> str:
        def write() -> None:
            given = [self._line(F32, f"parameter({n})") for n in range(len(operands))]
            self._return([F32], [self._simple(node, given)])

        name = self._computation(write)
        called = ", ".join(operands)
        fused = node.op not in IMPURE and self._noise.likes(0.5)
        how = f"fusion({called}), kind=kLoop, calls=" if fused else f"call({called}), to_apply="
        result = self._line(f"({F32})", f"{how}{name}")
        return self._line(F32, f"get-tuple-element({result}), index=0")

    def _while(self, node: Node, operands: list[str]) -> list[str]:
        """Write a loop with its counter; what it reads, and some constants, it carries as well."""
        step = node.bodies[0]
        sunk = [
            number + step.parameters
            for number, inner in enumerate(step.nodes)
            if inner.op == "constant" and self._noise.likes(0.5)
        ]
        constants = [self._simple(step.nodes[n - step.parameters], []) for n in sunk]
        slots = [*operands, *constants, self._line(S32, "constant(0)")]
        order = self._noise.shuffled(len(slots))
        types = [S32 if n == len(slots) - 1 else F32 for n in order]
        place = {slot: position for position, slot in enumerate(order)}
        nested = len(slots) > 2 and self._noise.likes()
        tuple_type = _tuple_type(types, nested=nested)

        def slot(whole: str, number: int) -> str:
            at = place[number]
            if nested and at < 2:
                whole = self._line(_tuple_type(types[:2]), f"get-tuple-element({whole}), index=0")
            index = max(at - 1, 0) if nested and at > 1 else at
            return self._line(types[at], f"get-tuple-element({whole}), index={index}")

        def packed(values: list[str]) -> list[str]:
            if not nested:
                return values
            pair = self._line(_tuple_type(types[:2]), f"tuple({values[0]}, {values[1]})")
            return [pair, *values[2:]]

        def write_step() -> None:
            whole = self._line(tuple_type, "parameter(0)")
            now = [slot(whole, n) for n in range(len(slots))]
            known = {number: now[len(operands) + n] for n, number in enumerate(sunk)}
            results = self._block(step, now[: len(operands)], known)
            one = self._line(S32, "constant(1)")
            counter = self._line(S32, f"add({now[-1]}, {one})")
            after = [*results, *now[len(results) : -1], counter]
            values = packed([after[n] for n in order])
            self._root(self._line(tuple_type, f"tuple({', '.join(values)})"))

        def write_condition() -> None:
            whole = self._line(tuple_type, "parameter(0)")
            counter, most = slot(whole, len(slots) - 1), self._line(S32, f"constant({node.detail})")
            self._root(self._line(PRED, f"compare({counter}, {most}), direction=LT"))

        names = f"condition={self._computation(write_condition)}, "
        names += f"body={self._computation(write_step)}"
        start = packed([slots[n] for n in order])
        given = self._line(tuple_type, f"tuple({', '.join(start)})")
        loop = self._line(tuple_type, f"while({given}), {names}")
        return [slot(loop, n) for n in range(len(step.results))]

    def _conditional(self, node: Node, operands: list[str]) -> list[str]:
        orders = [self._noise.shuffled(len(operands)) for _ in node.bodies]
        tuple_type = f"({', '.join([F32] * len(operands))})"
        names = []
        for branch, order in zip(node.bodies, orders, strict=True):

            def write(branch: Block = branch, order: list[int] = order) -> None:
                whole = self._line(tuple_type, "parameter(0)")
                own = [
                    self._line(F32, f"get-tuple-element({whole}), index={order.index(n)}")
                    for n in range(len(operands))
                ]
                self._return([F32] * len(branch.results), self._block(branch, own))

            names.append(self._computation(write))
        which = self._line(PRED, "constant(true)")
        given = [
            self._line(tuple_type, f"tuple({', '.join(operands[n] for n in order)})")
            for order in orders
        ]
        count = len(node.bodies[0].results)
        called = f"true_computation={names[0]}, false_computation={names[1]}"
        found = self._line(
            f"({', '.join([F32] * count)})", f"conditional({', '.join([which, *given])}), {called}"
        )
        return [self._line(F32, f"get-tuple-element({found}), index={k}") for k in range(count)]


def _tuple_type(types: list[str], *, nested: bool = False) -> str:
    """Return the type of a tuple; of one whose first two elements are a tuple in turn."""
    first = [_tuple_type(types[:2]), *types[2:]] if nested else types
    return f"({', '.join(first)})"


def mutants(program: Block) -> list[tuple[str, Block]]:
    """Return everything that means something else by one change, each with what was changed.

    Args:
        program: A tidy program.
    """
    found = [*_swapped(program), *_mutants(program)]
    return [(what, made) for what, made in found if made != program]


def _swapped(block: Block) -> Iterator[tuple[str, Block]]:
    """Yield programs with two operands swapped that are not the same value."""
    for number, node in enumerate(block.nodes):
        left, right = (_meaning(block, ref) for ref in (*node.operands, (0, 0), (0, 0))[:2])
        if node.op in ORDERED and left != right and "while" not in f"{left}{right}":
            other = replace(node, operands=node.operands[::-1])
            nodes = (*block.nodes[:number], other, *block.nodes[number + 1 :])
            yield "operands swapped", replace(block, nodes=nodes)


def _meaning(block: Block, ref: Ref) -> str:
    node = block.node(ref)
    if node is None:
        return str(ref)
    operands = [_meaning(block, one) for one in node.operands]
    if node.op in COMMUTATIVE:
        operands.sort()
    return f"{node.op}{node.detail}{node.reducer}{node.bodies}{ref[1]}({', '.join(operands)})"


def _mutants(block: Block) -> Iterator[tuple[str, Block]]:
    for number, node in enumerate(block.nodes):
        for what, other in _other_nodes(node):
            nodes = (*block.nodes[:number], other, *block.nodes[number + 1 :])
            yield what, replace(block, nodes=nodes)
        for which, body in enumerate(node.bodies):
            for what, other_body in _mutants(body):
                bodies = (*node.bodies[:which], other_body, *node.bodies[which + 1 :])
                nodes = (*block.nodes[:number], replace(node, bodies=bodies))
                yield what, replace(block, nodes=(*nodes, *block.nodes[number + 1 :]))
        if node.op in COLLECTIVES:
            yield "collective twice", replace(block, nodes=(*block.nodes, node))
        if node.op == "while":
            yield from _moved_into(block, number)


def _other_nodes(node: Node) -> Iterator[tuple[str, Node]]:
    if node.op == "constant":
        yield "constant", replace(node, detail="7")
    if node.op in UNARY:
        yield "operation", replace(node, op="cosine")
    if node.op == "while":
        yield "trip count", replace(node, detail="9")
    if node.op in COLLECTIVES:
        yield "collective gone", Node("alias", node.operands)
    if node.op == "all-reduce":
        yield "groups", replace(node, detail="{{0,2},{1,3}}")
        yield "reducer", replace(node, reducer="multiply")
    if node.op == "collective-permute":
        yield "pairs", replace(node, detail="source_target_pairs={{0,2},{2,0}}")


def _moved_into(block: Block, number: int) -> Iterator[tuple[str, Block]]:
    """Yield a block whose loop computes in each step what was computed before it."""
    loop = block.nodes[number]
    step = loop.bodies[0]
    for place in range(len(step.results), len(loop.operands)):
        source = block.node(loop.operands[place])
        if source is None or source.op not in UNARY:
            continue
        made = (step.parameters + len(step.nodes), 0)
        nodes = tuple(
            replace(n, operands=tuple(made if ref == (place, 0) else ref for ref in n.operands))
            for n in step.nodes
        )
        inner = replace(step, nodes=(*nodes, Node(source.op, ((place, 0),))))
        operands = (*loop.operands[:place], source.operands[0], *loop.operands[place + 1 :])
        other = replace(loop, operands=operands, bodies=(inner,))
        all_nodes = (*block.nodes[:number], other, *block.nodes[number + 1 :])
        yield "moved into a loop", replace(block, nodes=all_nodes)
