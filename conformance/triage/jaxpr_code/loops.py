"""How loops are said: their jaxprs become functions of what is carried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.ir.jaxpr.document import Aval
from conformance.triage.jaxpr_code.program import Assigned, Value
from conformance.triage.jaxpr_code.reductions import reduction
from conformance.triage.jaxpr_code.text import one_or_tuple, plain
from conformance.triage.jaxpr_code.uses import types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.ir.jaxpr.document import Jaxpr
    from conformance.triage.jaxpr_code.writer import Body, Equation, Rule


def _texts(values: Sequence[Value]) -> list[str]:
    return [value.text for value in values]


@dataclass(frozen=True, slots=True)
class _Packed:
    """Values that a function takes as one parameter.

    Attributes:
        parameter: Its name.
        values: The values.
    """

    parameter: str
    values: list[Value]

    def unpack(self, body: Body) -> None:
        """Write the statement that takes the parameter apart, unless one value is all of it."""
        if len(self.values) > 1:
            body.say(f"{', '.join(_texts(self.values))} = {self.parameter}")


def _packed(
    eqn: Equation, jaxpr: Jaxpr, start: int, given: Sequence[Value], called: str
) -> _Packed:
    values = eqn.program.parameters(jaxpr, start, given)
    alone = len(values) == 1
    return _Packed(values[0].text if alone else eqn.program.names.fresh(called), values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _While:
    """The parts of a loop that ends by a condition.

    Attributes:
        shape: Shape of what the condition gives: of a batch each part goes on by itself.
    """

    eqn: Equation
    cond: Jaxpr
    body: Jaxpr
    cond_consts: list[Value]
    body_consts: list[Value]
    initial: list[Value]
    shape: list[int | str]

    def said(self) -> str:
        """Write its functions, and return the call."""
        start = one_or_tuple(_texts(self.initial))
        if self.shape:
            going = self._condition("going_on")
            names = (self._any(going), self._masked_step(going))
        else:
            names = (self._condition("go_on"), self._step())
        return f"lax.while_loop({names[0]}, {names[1]}, {start})"

    def _condition(self, called: str) -> str:
        return self._function(called, self.cond, self.cond_consts, lambda body, carry: body.result(
            self.cond, [*self.cond_consts, *carry]))  # fmt: skip

    def _step(self) -> str:
        return self._function("step", self.body, self.body_consts, lambda body, carry: body.result(
            self.body, [*self.body_consts, *carry]))  # fmt: skip

    def _any(self, going: str) -> str:
        """Write the condition of a batch: that of any part."""
        eqn, carry = self.eqn, self.eqn.program.names.fresh("carry")
        every = plain(list(range(len(self.shape))))
        pred = Value(text=f"{going}({carry})", aval=Aval(dtype="bool", shape=self.shape))
        said = reduction(eqn.program, "reduce_or", pred, every)
        name = eqn.program.names.fresh("go_on")
        return eqn.body.function(name, [carry], lambda _: said, context=eqn.context())

    def _masked_step(self, going: str) -> str:
        """Write the body of a batch: parts that do not go on stay as they are."""

        def write(body: Body, carry: Sequence[Value]) -> str:
            fresh = self.eqn.program.names.fresh
            go = fresh("going")
            body.say(f"{go} = {going}({one_or_tuple(_texts(carry))})")
            kept = []
            for old, new in zip(
                carry, body.eqns(self.body, [*self.body_consts, *carry]), strict=True
            ):
                kept.append(fresh("kept"))
                which = _spread(go, self.shape, old.aval.shape)
                body.say(f"{kept[-1]} = lax.select({which}, {new.text}, {old.text})")
            return one_or_tuple(kept)

        return self._function("step", self.body, self.body_consts, write)

    def _function(
        self,
        called: str,
        jaxpr: Jaxpr,
        consts: Sequence[Value],
        write: Callable[[Body, Sequence[Value]], str],
    ) -> str:
        eqn = self.eqn
        carry = _packed(eqn, jaxpr, len(consts), self.initial, "carry")

        def written(body: Body) -> str:
            carry.unpack(body)
            return write(body, carry.values)

        name = eqn.program.names.fresh(called)
        return eqn.body.function(name, [carry.parameter], written, context=eqn.context())


def _spread(text: str, shape: list[int | str], wanted: list[int | str]) -> str:
    if shape == wanted:
        return text
    return f"lax.broadcast_in_dim({text}, {plain(wanted)}, {plain(list(range(len(shape))))})"


def _while(eqn: Equation) -> str:
    cond_count, body_count = eqn.take("cond_nconsts"), eqn.take("body_nconsts")
    count = cond_count + body_count
    cond = eqn.jaxpr("cond_jaxpr")
    (predicate,) = cond.out
    types = types_of(cond)
    avals = eqn.program.document.avals
    return _While(
        eqn=eqn,
        cond=cond,
        body=eqn.jaxpr("body_jaxpr"),
        cond_consts=eqn.inputs[:cond_count],
        body_consts=eqn.inputs[cond_count:count],
        initial=eqn.inputs[count:],
        shape=avals[types[predicate]].shape if isinstance(predicate, int) else [],
    ).said()


def _scan(eqn: Equation) -> Assigned:
    parts = eqn.take("ft_in")  # from 0.11.0 in place of the counts
    counts = [eqn.take("num_consts"), eqn.take("num_carry")]
    consts, carried = parts[1:3] if isinstance(parts, list) else counts
    body_jaxpr, split = eqn.jaxpr("jaxpr"), consts + carried
    initial, xs = eqn.inputs[consts:split], eqn.inputs[split:]
    carry = _packed(eqn, body_jaxpr, consts, initial, "carry")
    items = _packed(eqn, body_jaxpr, split, xs, "item")

    def write(body: Body) -> str:
        carry.unpack(body)
        items.unpack(body)
        out = body.eqns(body_jaxpr, [*eqn.inputs[:consts], *carry.values, *items.values])
        return f"{_group(_texts(out[:carried]))}, {_group(_texts(out[carried:]))}"

    name = eqn.program.names.fresh("step")
    eqn.body.function(name, [carry.parameter, items.parameter], write, context=eqn.context())
    said = [
        name,
        _group(_texts(initial)),
        _group(_texts(xs)),
        *_scan_options(eqn, bounded=bool(xs)),
    ]
    names = eqn.names()
    target = f"{_target(names[:carried])}, {_target(names[carried:])}"
    return Assigned(target, f"lax.scan({', '.join(said)})", names)


def _scan_options(eqn: Equation, *, bounded: bool) -> list[str]:
    length = eqn.take("length")
    said = [] if bounded else [f"length={length}"]
    if eqn.take("reverse"):
        said.append("reverse=True")
    if (unroll := eqn.take("unroll")) not in {None, 1}:
        said.append(f"unroll={unroll}")
    if eqn.take("_split_transpose"):
        said.append("_split_transpose=True")
    return said


def _group(texts: Sequence[str]) -> str:
    """Return the text of a part of a tree: None where it is empty."""
    return one_or_tuple(texts) if texts else "None"


def _target(names: Sequence[str]) -> str:
    if not names:
        return "_"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


RULES: Final[dict[str, Rule]] = {"scan": _scan, "while": _while}
"""How each of these primitives is said."""
