"""How branches and calls are said: their jaxprs become functions, or stand in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.placing import sharding_text, space_text
from conformance.triage.jaxpr_code.program import UnsayableError, Value
from conformance.triage.jaxpr_code.text import one_or_tuple, plain, tuple_of
from conformance.triage.jaxpr_code.uses import asks_platform, is_bounded, is_predicate
from conformance.triage.jaxpr_code.writer import COMPUTE_TYPE, Body, says_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.ir.jaxpr.document import Jaxpr
    from conformance.triage.jaxpr_code.writer import Equation, Rule

POLICIES: Final = frozenset(
    {
        *("everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots"),
        *("dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims"),
    }
)
"""Policies of `jax.checkpoint` that are functions of `jax.checkpoint_policies` themselves."""


def _cond(eqn: Equation) -> str:
    branches = [eqn.program.document.jaxprs[one["jaxpr"]] for one in eqn.take("branches")]
    operands = eqn.inputs[1:]
    platforms = _platforms(eqn)
    called = [*_called(eqn, platforms, len(branches))]
    names = [
        _function(eqn, jaxpr, operands, name) for jaxpr, name in zip(branches, called, strict=True)
    ]
    return _choice(eqn, platforms, names, [value.text for value in operands])


def _called(eqn: Equation, platforms: list[Any], count: int) -> list[str]:
    if platforms:
        return [f"on_{'_'.join(names or ['any'])}" for names in platforms]
    if _predicate(eqn) is not None:
        return ["otherwise", "then"]
    return ["branch"] * count


def _choice(eqn: Equation, platforms: list[Any], names: list[str], operands: list[str]) -> str:
    if platforms:
        said = [
            f"{platform}={name}"
            for of, name in zip(platforms, names, strict=True)
            for platform in of or ["default"]
        ]
        return f"lax.platform_dependent({', '.join([*operands, *said])})"
    predicate = _predicate(eqn)
    if predicate is not None:
        return f"lax.cond({', '.join([predicate, *reversed(names), *operands])})"
    maker = eqn.makers[0]
    index = eqn.texts[0]
    if maker is not None and is_bounded(maker.eqn, len(names)):
        index = maker.texts[1]
    branches = f"[{', '.join(names)}]"
    return f"lax.switch({', '.join([index, branches, *operands])})"


def _predicate(eqn: Equation) -> str | None:
    """Return what a choice between two is decided by, if it was a truth value."""
    maker = eqn.makers[0]
    if maker is None or not is_predicate(maker.eqn) or len(eqn.take("branches")) != 2:  # noqa: PLR2004
        return None
    (value,) = maker.inputs
    return value.text if value.aval.dtype == "bool" else None


def _platforms(eqn: Equation) -> list[Any]:
    """Return the platforms of each branch, None for all others; nothing if none is asked for."""
    eqn.take("branches_platforms")
    maker = eqn.makers[0]
    if maker is not None and maker.primitive == "clamp":
        maker = maker.makers[1]
    if maker is None or not asks_platform(maker.eqn):
        return []
    platforms = list(maker.take("platforms") or [])
    if maker.take("has_default"):
        platforms.append(None)
    return platforms


def _inline(*names: str) -> Rule:
    """Return the rule of a call that means no more than what it calls."""

    def rule(eqn: Equation) -> list[Value]:
        number = eqn.jaxpr_number(*names)
        for name in eqn.eqn.params:
            eqn.take(name)
        return eqn.body.eqns(eqn.program.document.jaxprs[number], eqn.inputs)

    return rule


def _jit(eqn: Equation) -> str | list[Value]:
    number = eqn.jaxpr_number("jaxpr")
    name = eqn.take("name")
    eqn.take("inline")
    options = _jit_options(eqn)
    if not options and _is_of_a_library(eqn, number):
        return eqn.body.eqns(eqn.program.document.jaxprs[number], eqn.inputs)
    function = _top_level(eqn, number, str(name))
    return f"jax.jit({', '.join([function, *options])})({', '.join(eqn.texts)})"


def _is_of_a_library(eqn: Equation, number: int) -> bool:
    """Say whether a function comes from a package: all of it from the line that calls it."""
    document = eqn.program.document
    place = document.sources[eqn.eqn.source][1:], eqn.eqn.params.get(COMPUTE_TYPE)
    return all(
        (document.sources[one.source][1:], one.params.get(COMPUTE_TYPE)) == place
        for one in document.jaxprs[number].eqns
    )


def _jit_options(eqn: Equation) -> list[str]:
    said = []
    for name in ("in_shardings", "out_shardings"):
        shardings = eqn.take(name)
        if not says_nothing(shardings):
            texts = [_jit_sharding(eqn, name, one) for one in shardings]
            one = name == "out_shardings" and len(texts) == 1
            said.append(f"{name}={texts[0] if one else tuple_of(texts)}")
    donated = [n for n, given in enumerate(eqn.take("donated_invars", [])) if given]
    if donated:
        said.append(f"donate_argnums={plain(donated)}")
    if eqn.take("keep_unused"):
        said.append("keep_unused=True")
    if eqn.take("ctx_mesh") not in (None, ["mesh"]):
        raise UnsayableError("ctx_mesh", "the mesh of the context is not known")
    if eqn.take("resource_env") not in (None, ["mesh"]):
        raise UnsayableError("resource_env", "the mesh of the context is not known")
    if pairs := eqn.take("compiler_options_kvs"):
        items = ", ".join(f"{plain(key)}: {plain(value)}" for key, value in pairs)
        said.append(f"compiler_options={{{items}}}")
    return said


def _jit_sharding(eqn: Equation, parameter: str, data: Any) -> str:
    return "None" if says_nothing(data) else sharding_text(eqn, parameter, data)


def _top_level(eqn: Equation, number: int, called: str) -> str:
    """Return the name of a function at the top level that computes a jaxpr."""
    program, context = eqn.program, eqn.context()
    if (number, context) not in program.jitted:
        jaxpr, outer = program.document.jaxprs[number], Body(program, eqn.body.rules)
        given = program.parameters(jaxpr, 0, eqn.inputs)
        program.jitted[number, context] = outer.function(
            program.names.fresh("anonymous" if called == "<lambda>" else called),
            [value.text for value in given],
            lambda body: body.result(jaxpr, given),
            context=context,
        )
        program.functions.append("\n".join(outer.lines))
    return program.jitted[number, context]


def _function(
    eqn: Equation, jaxpr: Jaxpr, operands: Sequence[Value], called: str, context: str | None = None
) -> str:
    """Write a function of some operands before an equation, and return its name."""
    given = eqn.program.parameters(jaxpr, 0, operands)
    return eqn.body.function(
        eqn.program.names.fresh(called),
        [value.text for value in given],
        lambda body: body.result(jaxpr, given),
        context=eqn.context() if context is None else context,
    )


def _checkpoint(eqn: Equation) -> str:
    eqn.take("differentiated")
    more = []
    if eqn.take("prevent_cse", True) is not True:
        more.append("prevent_cse=False")
    if (policy := eqn.take("policy")) is not None:
        if policy not in POLICIES:
            raise UnsayableError("policy", f"{plain(policy)} is not one of jax's own")
        more.append(f"policy=jax.checkpoint_policies.{policy}")
    name = _function(eqn, eqn.jaxpr("jaxpr"), eqn.inputs, "block")
    return f"jax.checkpoint({', '.join([name, *more])})({', '.join(eqn.texts)})"


def _compute_on(eqn: Equation) -> str:
    kind = eqn.take("compute_type")
    eqn.program.imports.add("from jax.experimental.compute_on import compute_on")
    spaces = [space_text("out_memory_spaces", one) for one in eqn.take("out_memory_spaces")]
    context = f"compute_on({plain(kind)})"
    name = _function(eqn, eqn.jaxpr("jaxpr"), eqn.inputs, "on_host", context)
    said = f"compute_type={plain(kind)}, out_memory_spaces={one_or_tuple(spaces)}"
    return f"compute_on({name}, {said})({', '.join(eqn.texts)})"


def _reduce(eqn: Equation) -> str:
    half = len(eqn.inputs) // 2
    eqn.take("computation")
    eqn.take("consts")
    jaxpr = eqn.jaxpr("jaxpr")
    given = eqn.program.fresh(jaxpr.inputs, ["a"] * half + ["b"] * half)
    left, right = given[:half], given[half:]
    fresh = eqn.program.names.fresh
    signature = [left[0].text, right[0].text] if half == 1 else [fresh("a"), fresh("b")]

    def write(body: Body) -> str:
        for name, part in zip(signature, (left, right), strict=True):
            if half > 1:
                body.say(f"{', '.join(value.text for value in part)} = {name}")
        return body.result(jaxpr, given)

    name = eqn.body.function(fresh("combine"), signature, write, context=eqn.context())
    operands, starts = one_or_tuple(eqn.texts[:half]), one_or_tuple(eqn.texts[half:])
    return f"lax.reduce({operands}, {starts}, {name}, {plain(eqn.take('dimensions'))})"


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("jit", "pjit"), _jit),
    **dict.fromkeys(("checkpoint", "remat", "remat2"), _checkpoint),
    **dict.fromkeys(
        ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
        _inline("call_jaxpr", "fun_jaxpr"),
    ),
    **dict.fromkeys(
        ("closed_call", "core_call", "remat_call", "named_call"), _inline("call_jaxpr", "jaxpr")
    ),
    "compute_on": _compute_on,
    "cond": _cond,
    "reduce": _reduce,
}
"""How each of these primitives is said."""
