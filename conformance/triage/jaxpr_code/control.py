"""How branches, calls and loops are written: their jaxprs become functions, or stand in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.ir.jaxpr.document import Aval
from conformance.triage.jaxpr_code.arrays import reduction
from conformance.triage.jaxpr_code.dataflow import Dataflow
from conformance.triage.jaxpr_code.literals import one_or_tuple, plain, tuple_of
from conformance.triage.jaxpr_code.program import CodeValue
from conformance.triage.jaxpr_code.sharding import sharding_text, space_text
from conformance.triage.jaxpr_code.template import fill
from conformance.triage.jaxpr_code.writer import COMPUTE_TYPE, Assignment, FunctionBody, is_default

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.ir.jaxpr.document import Eqn
    from conformance.triage.jaxpr_code.writer import Equation, Rule

POLICIES: Final = frozenset({
    "everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots",
    "dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims",
})  # fmt: skip
"""Policies of `jax.checkpoint` that are functions of `jax.checkpoint_policies` themselves."""


def _each(values: Sequence[CodeValue]) -> list[tuple[str, list[str]]]:
    """Return one parameter for each value."""
    return [("", [value.hint]) for value in values]


def _texts(values: Sequence[CodeValue]) -> list[str]:
    return [value.text for value in values]


def _cond(eqn: Equation) -> str:
    jaxprs = [eqn.program.document.jaxprs[one["jaxpr"]] for one in eqn.take("branches")]
    selector, operands = eqn.flow.selector(eqn.eqn), eqn.inputs[1:]
    platforms = _platforms(selector.platforms)
    if platforms:
        called = [f"on_{'_'.join(names or ['any'])}" for names in platforms]
    else:
        called = ["otherwise", "then"] if selector.is_predicate else ["branch"] * len(jaxprs)
    names = [
        eqn.function(name, jaxpr, _each(operands))
        for jaxpr, name in zip(jaxprs, called, strict=True)
    ]
    texts = _texts(operands)
    if platforms:
        keywords = [
            f"{platform}={name}"
            for of, name in zip(platforms, names, strict=True)
            for platform in of or ["default"]
        ]
        return f"choice = lax.platform_dependent({', '.join([*texts, *keywords])})"
    selected = eqn.program.atom(selector.atom, eqn.values).text
    if selector.is_predicate:
        return f"choice = lax.cond({', '.join([selected, *reversed(names), *texts])})"
    branches = f"[{', '.join(names)}]"
    return f"choice = lax.switch({', '.join([selected, branches, *texts])})"


def _platforms(asked: Eqn | None) -> list[Any]:
    """Return the platforms of each branch, None for all others; empty if none is asked for."""
    if asked is None:
        return []
    others = [None] if asked.params.get("has_default") else []
    return [*(asked.params.get("platforms") or []), *others]


def _inline(eqn: Equation) -> list[CodeValue]:
    """Write what is called in place of the call, which means no more than that."""
    number = eqn.jaxpr_number("call_jaxpr", "fun_jaxpr", "jaxpr")
    for name in eqn.eqn.params:
        eqn.take(name)
    return eqn.body.eqns(eqn.program.document.jaxprs[number], eqn.inputs)


def _jit(eqn: Equation) -> str | list[CodeValue]:
    program, number, called = eqn.program, eqn.jaxpr_number("jaxpr"), str(eqn.take("name"))
    options, jaxpr = _jit_options(eqn), program.document.jaxprs[number]
    if not options and _is_of_a_library(eqn, number):
        return eqn.body.eqns(jaxpr, eqn.inputs)
    key = number, eqn.context()
    if key not in program.jitted:
        called = "anonymous" if called == "<lambda>" else called
        top = FunctionBody(program)
        program.jitted[key] = eqn.function(called, jaxpr, _each(eqn.inputs), body=top)
        program.functions.append("\n".join(top.lines))
    function = f"jax.jit({', '.join([program.jitted[key], *options])})"
    return f"called = {function}({', '.join(eqn.texts)})"


def _is_of_a_library(eqn: Equation, number: int) -> bool:
    """Say whether a function comes from a package: all of it from the line that calls it."""
    document = eqn.program.document
    place = document.sources[eqn.eqn.source][1:], eqn.eqn.params.get(COMPUTE_TYPE)
    return all(
        (document.sources[one.source][1:], one.params.get(COMPUTE_TYPE)) == place
        for one in document.jaxprs[number].eqns
    )


def _jit_options(eqn: Equation) -> list[str]:
    options = []
    for name in ("in_shardings", "out_shardings"):
        if not is_default(shardings := eqn.take(name)):
            texts = [
                "None" if is_default(one) else sharding_text(eqn, name, one) for one in shardings
            ]
            group = one_or_tuple if name == "out_shardings" else tuple_of
            options.append(f"{name}={group(texts)}")
    if donated := [n for n, given in enumerate(eqn.take("donated_invars", [])) if given]:
        options.append(f"donate_argnums={plain(donated)}")
    if eqn.take("keep_unused"):
        options.append("keep_unused=True")
    for name in ("ctx_mesh", "resource_env"):
        if eqn.take(name) not in (None, ["mesh"]):
            raise eqn.refusal(name, "the mesh of the context is not known")
    if pairs := eqn.take("compiler_options_kvs"):
        items = ", ".join(f"{plain(key)}: {plain(value)}" for key, value in pairs)
        options.append(f"compiler_options={{{items}}}")
    return options


def _checkpoint(eqn: Equation) -> str:
    more = "" if eqn.take("prevent_cse", True) is True else ", prevent_cse=False"
    if (policy := eqn.take("policy")) is not None:
        if policy not in POLICIES:
            raise eqn.refusal("policy", f"{plain(policy)} is not one of jax's own")
        more += f", policy=jax.checkpoint_policies.{policy}"
    name = eqn.function("block", eqn.jaxpr("jaxpr"), _each(eqn.inputs))
    return fill(eqn, f"kept = jax.checkpoint({name}{more})({{*}})")


def _compute_on(eqn: Equation) -> str:
    context = fill(eqn, "compute_on({compute_type})")
    spaces = [space_text(eqn, "out_memory_spaces", one) for one in eqn.take("out_memory_spaces")]
    name = eqn.function("on_host", eqn.jaxpr("jaxpr"), _each(eqn.inputs), context=context)
    more = f"out_memory_spaces={one_or_tuple(spaces)}"
    return fill(eqn, f"compute_on({name}, {{=compute_type}}, {more})({{*}})")


def _reduce(eqn: Equation) -> str:
    half = len(eqn.inputs) // 2
    parameters = [(name, [name] * half) for name in ("a", "b")]
    name = eqn.function("combine", eqn.jaxpr("jaxpr"), parameters)
    operands, starts = one_or_tuple(eqn.texts[:half]), one_or_tuple(eqn.texts[half:])
    return fill(eqn, f"lax.reduce({operands}, {starts}, {name}, {{dimensions}})")


def _packed(name: str, values: Sequence[CodeValue]) -> tuple[str, list[str]]:
    """Return one parameter for several values."""
    return name, [value.hint for value in values]


def _while(eqn: Equation) -> str:
    cond, body, fresh = eqn.jaxpr("cond_jaxpr"), eqn.jaxpr("body_jaxpr"), eqn.program.names.fresh
    count = eqn.take("cond_nconsts")
    end = count + eqn.take("body_nconsts")
    cond_consts, body_consts, initial = eqn.inputs[:count], eqn.inputs[count:end], eqn.inputs[end:]
    carry = [_packed("carry", initial)]
    shape = Dataflow(cond, eqn.program.document.avals).aval(cond.out[0]).shape
    if not shape:
        going = eqn.function("go_on", cond, carry, consts=cond_consts)
        step = eqn.function("step", body, carry, consts=body_consts)
        return f"loop = lax.while_loop({going}, {step}, {one_or_tuple(_texts(initial))})"

    # A batch continues while any part does; parts that have ended keep their values.
    def masked(inner: FunctionBody, given: list[CodeValue]) -> str:
        carried, go = given[len(body_consts) :], fresh("going")
        inner.add(f"{go} = {going}({one_or_tuple(_texts(carried))})")
        kept = []
        for old, new in zip(carried, inner.eqns(body, given), strict=True):
            kept.append(fresh("kept"))
            wanted, axes = old.aval.shape, plain(list(range(len(shape))))
            which = (
                go if wanted == shape else (f"lax.broadcast_in_dim({go}, {plain(wanted)}, {axes})")
            )
            inner.add(f"{kept[-1]} = lax.select({which}, {new.text}, {old.text})")
        return one_or_tuple(kept)

    going = eqn.function("going_on", cond, carry, consts=cond_consts)
    state = fresh("carry")
    pred = CodeValue(text=f"{going}({state})", aval=Aval(dtype="bool", shape=shape))
    anything = reduction(eqn.program, "reduce_or", pred, plain(list(range(len(shape)))))
    go_on = eqn.body.function(fresh("go_on"), [state], lambda _: anything, eqn.context())
    step = eqn.function("step", body, carry, consts=body_consts, write=masked)
    return f"loop = lax.while_loop({go_on}, {step}, {one_or_tuple(_texts(initial))})"


def _scan(eqn: Equation) -> Assignment:
    parts = eqn.take("ft_in")  # from 0.11.0 in place of the counts
    counts = [eqn.take("num_consts"), eqn.take("num_carry")]
    consts, carried = parts[1:3] if isinstance(parts, list) else counts
    jaxpr, split = eqn.jaxpr("jaxpr"), consts + carried
    initial, items = eqn.inputs[consts:split], eqn.inputs[split:]

    def write(inner: FunctionBody, given: list[CodeValue]) -> str:
        out = _texts(inner.eqns(jaxpr, given))
        return f"{_group(out[:carried])}, {_group(out[carried:])}"

    name = eqn.function(
        "step", jaxpr, [_packed("carry", initial), _packed("item", items)],
        consts=eqn.inputs[:consts], write=write,
    )  # fmt: skip
    length = "" if items else "{=length}"
    eqn.take("length")
    call = fill(
        eqn,
        f"lax.scan({name}, {_group(_texts(initial))}, {_group(_texts(items))}"
        f"{length and ', ' + length}{{=reverse?}}{{=unroll?1}}{{=_split_transpose?}})",
    )
    names = eqn.names("scan")
    target = f"{_target(names[:carried])}, {_target(names[carried:])}"
    return Assignment(target, call, names)


def _group(texts: Sequence[str]) -> str:
    """Return the text of a part of a tree: None where it is empty."""
    return one_or_tuple(texts) if texts else "None"


def _target(names: Sequence[str]) -> str:
    if not names:
        return "_"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


RULES: Final[dict[str, str | Rule]] = {
    **dict.fromkeys(("jit", "pjit"), _jit),
    **dict.fromkeys(("checkpoint", "remat", "remat2"), _checkpoint),
    **dict.fromkeys(
        (
            "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "closed_call",
            "core_call", "remat_call", "named_call",
        ),
        _inline,
    ),
    "compute_on": _compute_on,
    "cond": _cond,
    "reduce": _reduce,
    "scan": _scan,
    "while": _while,
}  # fmt: skip
"""How each of these primitives is written: a function, or a template."""
