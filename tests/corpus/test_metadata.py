"""A decorator that cannot be read: where, what was got, what is expected."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.discovery import BrokenCasesError
from conformance.model.case import Budget

if TYPE_CHECKING:
    from .conftest import Write


@pytest.mark.parametrize(
    ("decorator", "line", "message"),
    [
        ("probe(1)", 1, "takes keywords only"),
        ("probe(device=2)", 1, "unknown keyword `device`; did you mean `devices`?"),
        ("probe(zebra=2)", 1, "unknown keyword `zebra`; expected one of source, params"),
        ("probe(**more)", 1, "keywords must be literal, got **"),
        ("probe(\n  devices=N)", 2, "`devices` is `N`, expected a literal"),
        ("probe(timeout=2 * 30)", 1, "`timeout` is `2 * 30`, expected a literal"),
        (
            "probe(source=f'{x}')",
            1,
            "cases are read without being imported",
        ),
        ("probe(devices='4')", 1, "expected `int`, got `str` - at `$.devices`"),
        ("probe(devices=0)", 1, "`$.devices`"),
        ("probe(devices=True)", 1, "expected `int`, got `bool`"),
        ("probe(timeout=0)", 1, "`$.timeout`"),
        ("probe(rtol=-1)", 1, "`$.rtol`"),
        ("probe(platforms='cpu')", 1, "expected `array`, got `str` - at `$.platforms`"),
        ("probe(x64=1)", 1, "expected `bool`, got `int`"),
        ("probe(params={})", 1, "`params` is empty"),
        ("probe(params={'a': 1})", 1, "expected `object`, got `int`"),
        ("probe(params=[])", 1, "`params` is empty"),
        ("probe(params=['a'])", 1, "name has 0 parameters besides `env`, expected 1"),
        ("probe(params=['a', 'b', 'a'])", 1, "`params` has `a` twice; remove one"),
        (
            "probe(params={'a': {'axes': {1, 2}}})",
            1,
            "`params` of `a`: Object of type set is not JSON serializable, expected numbers",
        ),
        ("probe(params=[*TABLE])", 1, "`params` is `[*TABLE]`, expected a literal"),
        (
            "probe(given=dict(x=1))",
            1,
            "`given` is `dict(x=1)`, expected a dictionary",
        ),
        ("probe(given={})", 1, "`given` is `{}`, expected a dictionary from names of parameters"),
        ("probe(given={NAME: st.text()})", 1, "expected a dictionary from names of parameters"),
        ("probe(given={'x': 1})", 1, "`given` draws `x`, but name has no such parameter; add it"),
        ("probe(sizes=[1, 2])", 1, "`sizes` is [1, 2], expected at least 3, ascending"),
        ("probe(sizes=[1, 4, 2])", 1, "expected at least 3, ascending"),
        ("probe(sizes=[1, 2, 4])", 1, "`sizes` without a parameter `size` of name; add it"),
        ("probe(sizes=[0, 1, 2])", 1, "expected `int` >= 1"),
        ("probe(examples=3)", 1, "`examples` without `given`; remove it, or add `given`"),
        ("program(records='words')", 1, "@program has no `records`: give it a reference"),
        ("probe(facts={})", 1, "@probe has no `facts`"),
        ("probe(same_as=['jit'])", 1, "@probe has no `same_as`: only a program is run in variants"),
        ("program(same_as='jit')", 1, "expected `array`, got `str` - at `$.same_as`"),
        ("program(same_as=['egar'])", 1, "`same_as` has `egar`; did you mean `eager`?"),
        ("program(same_as=['pmap'])", 1, "`pmap`; expected one of jit, eager, aot, vmap_of_one"),
        ("program(same_as=('jit', 'jit'))", 1, "`same_as` has `jit` twice; remove one"),
        (
            "program(\n  facts={'filecheck': {'hlo': 'CHEK: add'}})",
            1,
            "`facts` has a wrong `filecheck`: hlo: line 1 `CHEK: add` is not a check, expected",
        ),
        ("probe(releases='0.6')", 1, "`0.6` is not a specifier of jax releases, expected e.g."),
        ("probe(releases='jaxlib<0.6')", 1, "is not a specifier of jax releases"),
        ("probe(requires=['flax=>1'])", 1, "`requires` has `flax=>1`"),
        ("probe(deviations=deviation('<1'))", 1, "expected a list of deviation(...)"),
        ("probe(deviations=[\n  '<1'])", 2, "`deviations` has `'<1'`, expected deviation(...)"),
        ("probe(deviations=[other('<1')])", 1, "expected deviation(...)"),
        ("probe(deviations=[\n deviation('<1', 'raised')])", 2, "takes 1 positional argument"),
        ("probe(deviations=[\n deviation('<1', outcom='ok')])", 2, "did you mean `outcome`?"),
        (
            "probe(deviations=[\n deviation('<1', outcome='infra')])",
            2,
            "`infra`, expected ok, raised",
        ),
        ("probe(deviations=[\n deviation('1.0')])", 2, "`1.0` is not a specifier of jax releases"),
        (
            "probe(deviations=[\n deviation(packages={'flax': 'x'})])",
            2,
            "specifier of flax releases",
        ),
        ("probe(deviations=[deviation(V)])", 1, "`releases` is `V`, expected a literal"),
        (
            "probe(params={'a': {}}, deviations=[deviation(params=['b'])])",
            1,
            "deviation names the parameter ['b'], the case has ['a']",
        ),
        ("probe(deviations=[deviation(params=['b'])])", 1, "the case has []"),
        ("probe(budgets=budget('cpu', 1))", 1, "expected a list of budget(...)"),
        (
            "probe(budgets=[\n deviation('<1')])",
            2,
            "has `deviation('<1')`, expected budget",
        ),
        ("probe(budgets=[\n budget('cpu', 1)])", 2, "missing required field `reason`"),
        ("probe(budgets=[budget('cpu', 1, reason='')])", 1, "`$.reason`"),
        ("probe(budgets=[budget('cpu', -1, reason='a')])", 1, "`$.ulp`"),
        ("probe(budgets=[budget('cpu', 0.5, reason='a')])", 1, "expected `int`, got `float`"),
        (
            "probe(budgets=[budget('cpu', 1, 'a')])",
            1,
            "budget takes 2 positional arguments, platform and ulp",
        ),
        ("probe(budgets=[budget('cpu', ulps=1)])", 1, "did you mean `ulp`?"),
        (
            "probe(params={'a': {}}, budgets=[budget('cpu', 1, reason='c', params=['b'])])",
            1,
            "budget names the parameter ['b'], the case has ['a']",
        ),
    ],
)
def test_a_bad_decorator_says_where_and_why(
    write: Write, decorator: str, line: int, message: str
) -> None:
    """One line, beginning with file and line."""
    with pytest.raises(BrokenCasesError) as caught:
        write(family__topic=f"@{decorator}\ndef name(env): ...\n")
    (error,) = caught.value.errors
    assert str(error).startswith(f"{error.file}:{line}: ")
    assert message in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("spelling", ["jax<0.6", "<0.6", " jax <0.6", "< 0.6"])
def test_a_specifier_with_or_without_the_name(write: Write, spelling: str) -> None:
    """Both read as the same range."""
    (case,) = write(family__topic=f"@probe(releases={spelling!r})\ndef name(env): ...\n")
    assert case.releases.replace(" ", "") == "<0.6"


def test_budgets_are_of_a_parametrisation(write: Write) -> None:
    """Those that name none are for all."""
    source = """
        @probe(
            params={"narrow": {}, "wide": {}},
            budgets=[
                budget("cpu", 1, leaves=["exp", 0], params=["wide"], reason="it is", source="a"),
                budget("gpu", 2, reason="libdevice"),
            ],
        )
        def name(env): ...
    """
    (narrow, wide) = write(family__topic=dedent(source))
    everywhere = Budget(platform="gpu", ulp=2, reason="libdevice")
    polynomial = Budget(platform="cpu", ulp=1, leaves=("exp", 0), reason="it is", source="a")
    assert (narrow.budgets, wide.budgets) == ((everywhere,), (polynomial, everywhere))
