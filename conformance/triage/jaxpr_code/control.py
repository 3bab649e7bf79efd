"""Rules for branches, calls and loops: their jaxprs become functions, or replace the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.ir.jaxpr.document import Aval
from conformance.triage.jaxpr_code.arrays import render_reduction
from conformance.triage.jaxpr_code.dataflow import Dataflow
from conformance.triage.jaxpr_code.literals import render_items, render_plain, render_tuple
from conformance.triage.jaxpr_code.program import CodeValue
from conformance.triage.jaxpr_code.sharding import render_sharding, render_space
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
"""Policies of `jax.checkpoint` that `jax.checkpoint_policies` has without arguments."""


def _list_parameters(values: Sequence[CodeValue]) -> list[tuple[str, list[str]]]:
    """Return one unnamed parameter for each value, with the hint for the name of the value."""
    return [("", [value.hint]) for value in values]


def _texts(values: Sequence[CodeValue]) -> list[str]:
    return [value.text for value in values]


def _write_cond(eqn: Equation) -> str:
    jaxprs = [eqn.program.document.jaxprs[branch["jaxpr"]] for branch in eqn.take("branches")]
    selector, operands = eqn.flow.find_selector(eqn.eqn), eqn.inputs[1:]
    platforms = _branch_platforms(selector.platforms)
    if platforms:
        called = [f"on_{'_'.join(names or ['any'])}" for names in platforms]
    else:
        called = ["otherwise", "then"] if selector.is_predicate else ["branch"] * len(jaxprs)
    names = [
        eqn.write_function(name, jaxpr, _list_parameters(operands))
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
    selected = eqn.program.render_atom(selector.atom, eqn.values).text
    if selector.is_predicate:
        # `lax.cond` takes the branch for true first, its jaxpr has it last.
        return f"choice = lax.cond({', '.join([selected, *reversed(names), *texts])})"
    branches = f"[{', '.join(names)}]"
    return f"choice = lax.switch({', '.join([selected, branches, *texts])})"


def _branch_platforms(index: Eqn | None) -> list[Any]:
    """Return the platforms of each branch, None for all others; empty without an index."""
    if index is None:
        return []
    others = [None] if index.params.get("has_default") else []
    return [*(index.params.get("platforms") or []), *others]


def _inline_call(eqn: Equation) -> list[CodeValue]:
    """Write the equations of the called jaxpr in place of the call."""
    number = eqn.get_jaxpr_number("call_jaxpr", "fun_jaxpr", "jaxpr")
    # The rest is about derivatives, which were taken while the program was traced.
    for name in eqn.eqn.params:
        eqn.take(name)
    return eqn.body.write_equations(eqn.program.document.jaxprs[number], eqn.inputs)


def _write_jit(eqn: Equation) -> str | list[CodeValue]:
    program, number, called = eqn.program, eqn.get_jaxpr_number("jaxpr"), str(eqn.take("name"))
    options, jaxpr = _render_jit_options(eqn), program.document.jaxprs[number]
    # As a call it would be a `jit` that the author never wrote.
    if not options and _is_library_function(eqn, number):
        return eqn.body.write_equations(jaxpr, eqn.inputs)
    # One function for all calls, except that in another context its equations have other
    # parameters.
    key = number, eqn.render_context()
    if key not in program.jitted:
        called = "anonymous" if called == "<lambda>" else called
        # At the top level, since several functions may call it.
        top = FunctionBody(program)
        program.jitted[key] = eqn.write_function(
            called, jaxpr, _list_parameters(eqn.inputs), body=top
        )
        program.functions.append("\n".join(top.lines))
    function = f"jax.jit({', '.join([program.jitted[key], *options])})"
    return f"called = {function}({', '.join(eqn.texts)})"


def _is_library_function(eqn: Equation, number: int) -> bool:
    """Return whether a package wrote the function that a `jit` equation calls.

    Args:
        eqn: The `jit` equation.
        number: Number of the called jaxpr.

    Returns:
        True if all equations of the function are located at the line of the call itself.
    """
    document = eqn.program.document
    place = document.sources[eqn.eqn.source][1:], eqn.eqn.params.get(COMPUTE_TYPE)
    # Locations have no frames of packages: all equations of `jnp.where` are at the line that calls
    # it.
    return all(
        (document.sources[inner.source][1:], inner.params.get(COMPUTE_TYPE)) == place
        for inner in document.jaxprs[number].eqns
    )


def _render_jit_options(eqn: Equation) -> list[str]:
    """Return the keywords of `jax.jit`: shardings, donation, `keep_unused`, compiler options."""
    options = []
    for name in ("in_shardings", "out_shardings"):
        if not is_default(shardings := eqn.take(name)):
            texts = [
                "None" if is_default(item) else render_sharding(eqn, name, item)
                for item in shardings
            ]
            # Shardings of inputs are a tuple with an item for each argument; those of the output
            # form a tree.
            group = render_items if name == "out_shardings" else render_tuple
            options.append(f"{name}={group(texts)}")
    if donated := [n for n, is_donated in enumerate(eqn.take("donated_invars", [])) if is_donated]:
        options.append(f"donate_argnums={render_plain(donated)}")
    if eqn.take("keep_unused"):
        options.append("keep_unused=True")
    for name in ("ctx_mesh", "resource_env"):
        # A mesh without axes is none.
        if eqn.take(name) not in (None, ["mesh"]):
            raise eqn.make_error(name, "the mesh of the context is not known")
    if pairs := eqn.take("compiler_options_kvs"):
        items = ", ".join(f"{render_plain(key)}: {render_plain(value)}" for key, value in pairs)
        options.append(f"compiler_options={{{items}}}")
    return options


def _write_checkpoint(eqn: Equation) -> str:
    more = "" if eqn.take("prevent_cse", True) is True else ", prevent_cse=False"
    if (policy := eqn.take("policy")) is not None:
        # Policies with arguments are closures, whose arguments the jaxpr does not have.
        if policy not in POLICIES:
            raise eqn.make_error("policy", f"{render_plain(policy)} is no policy of jax")
        more += f", policy=jax.checkpoint_policies.{policy}"
    name = eqn.write_function("block", eqn.get_jaxpr("jaxpr"), _list_parameters(eqn.inputs))
    return fill(eqn, f"kept = jax.checkpoint({name}{more})({{*}})")


def _write_compute_on(eqn: Equation) -> str:
    context = fill(eqn, "compute_on({compute_type})")
    spaces = [
        render_space(eqn, "out_memory_spaces", space) for space in eqn.take("out_memory_spaces")
    ]
    name = eqn.write_function(
        "on_host", eqn.get_jaxpr("jaxpr"), _list_parameters(eqn.inputs), context=context
    )
    more = f"out_memory_spaces={render_items(spaces)}"
    return fill(eqn, f"compute_on({name}, {{=compute_type}}, {more})({{*}})")


def _write_reduce(eqn: Equation) -> str:
    half = len(eqn.inputs) // 2
    parameters = [(name, [name] * half) for name in ("a", "b")]
    name = eqn.write_function("combine", eqn.get_jaxpr("jaxpr"), parameters)
    operands, starts = render_items(eqn.texts[:half]), render_items(eqn.texts[half:])
    return fill(eqn, f"lax.reduce({operands}, {starts}, {name}, {{dimensions}})")


def _pack_parameter(name: str, values: Sequence[CodeValue]) -> tuple[str, list[str]]:
    """Return one named parameter that holds several values, with the hints for their names."""
    return name, [value.hint for value in values]


def _write_while(eqn: Equation) -> str:
    cond, body, reserve = (
        eqn.get_jaxpr("cond_jaxpr"),
        eqn.get_jaxpr("body_jaxpr"),
        eqn.program.names.reserve,
    )
    count = eqn.take("cond_nconsts")
    end = count + eqn.take("body_nconsts")
    cond_consts, body_consts, initial = eqn.inputs[:count], eqn.inputs[count:end], eqn.inputs[end:]
    carry = [_pack_parameter("carry", initial)]
    shape = Dataflow(cond, eqn.program.document.avals).get_aval(cond.out[0]).shape
    if not shape:
        going = eqn.write_function("go_on", cond, carry, consts=cond_consts)
        step = eqn.write_function("step", body, carry, consts=body_consts)
        return f"loop = lax.while_loop({going}, {step}, {render_items(_texts(initial))})"
    dimensions = render_plain(list(range(len(shape))))

    # A batched loop runs while any condition holds; examples whose condition fails are kept.
    def write_masked(inner: FunctionBody, arguments: list[CodeValue]) -> str:
        carried, go = arguments[len(body_consts) :], reserve("going")
        inner.add(f"{go} = {going}({render_items(_texts(carried))})")
        kept = []
        for old, new in zip(carried, inner.write_equations(body, arguments), strict=True):
            kept.append(reserve("kept"))
            target = old.aval.shape
            which = (
                go
                if target == shape
                else f"lax.broadcast_in_dim({go}, {render_plain(target)}, {dimensions})"
            )
            inner.add(f"{kept[-1]} = lax.select({which}, {new.text}, {old.text})")
        return render_items(kept)

    going = eqn.write_function("going_on", cond, carry, consts=cond_consts)
    state = reserve("carry")
    pred = CodeValue(text=f"{going}({state})", aval=Aval(dtype="bool", shape=shape))
    is_any_going = render_reduction(eqn.program, "reduce_or", pred, dimensions)
    go_on = eqn.body.write_function(
        reserve("go_on"), [state], lambda _: is_any_going, eqn.render_context()
    )
    step = eqn.write_function("step", body, carry, consts=body_consts, write=write_masked)
    return f"loop = lax.while_loop({go_on}, {step}, {render_items(_texts(initial))})"


def _write_scan(eqn: Equation) -> Assignment:
    parts = eqn.take("ft_in")  # replaces the counts from jax 0.11.0 on
    counts = [eqn.take("num_consts"), eqn.take("num_carry")]
    consts, carried = parts[1:3] if isinstance(parts, list) else counts
    jaxpr, split = eqn.get_jaxpr("jaxpr"), consts + carried
    initial, items = eqn.inputs[consts:split], eqn.inputs[split:]

    def write(inner: FunctionBody, arguments: list[CodeValue]) -> str:
        out = _texts(inner.write_equations(jaxpr, arguments))
        return f"{_render_group(out[:carried])}, {_render_group(out[carried:])}"

    name = eqn.write_function(
        "step", jaxpr, [_pack_parameter("carry", initial), _pack_parameter("item", items)],
        consts=eqn.inputs[:consts], write=write,
    )  # fmt: skip
    length = "" if items else "{=length}"
    # In any case: an equation is refused if no rule takes one of its parameters.
    eqn.take("length")
    call = fill(
        eqn,
        f"lax.scan({name}, {_render_group(_texts(initial))}, {_render_group(_texts(items))}"
        f"{length and ', ' + length}{{=reverse?}}{{=unroll?1}}{{=_split_transpose?}})",
    )
    names = eqn.make_names("scan")
    target = f"{_render_target(names[:carried])}, {_render_target(names[carried:])}"
    return Assignment(target, call, names)


def _render_group(texts: Sequence[str]) -> str:
    """Return the text of a subtree, `None` if it is empty."""
    # None is a tree without leaves.
    return render_items(texts) if texts else "None"


def _render_target(names: Sequence[str]) -> str:
    if not names:
        return "_"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


RULES: Final[dict[str, str | Rule]] = {
    **dict.fromkeys(("jit", "pjit"), _write_jit),
    **dict.fromkeys(("checkpoint", "remat", "remat2"), _write_checkpoint),
    **dict.fromkeys(
        (
            "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "closed_call",
            "core_call", "remat_call", "named_call",
        ),
        _inline_call,
    ),
    "compute_on": _write_compute_on,
    "cond": _write_cond,
    "reduce": _write_reduce,
    "scan": _write_scan,
    "while": _write_while,
}  # fmt: skip
"""The rule of each primitive: a function, or a template."""
