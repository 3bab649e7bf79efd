"""Rendering of templates: text is sanitized, so that nothing in it hides, and then escaped."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from conformance import __version__
from conformance.model.upstream import find_thread_url
from conformance.report.site.addresses import case_page, href, repro_file, root_of
from conformance.report.text import flatten, format_moment, sanitize
from conformance.report.verdicts import LETTERS
from conformance.triage.evidence import format_culprit
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.run_files import CulpritCommit


JAX_THREADS: Final = "jax-ml/jax"
TEMPLATES: Final = ("conformance.report.site", "templates")


def render(template: str, page: str, data: Mapping[str, Any]) -> bytes:
    """Return a page.

    Args:
        template: File name of its template.
        page: Path of the page below the site's root.
        data: Variables of the template, in addition to `root` and `page`.
    """
    text = _make_environment().get_template(template).render(root=root_of(page), page=page, **data)
    # Names of files may hold lone surrogates, which UTF-8 cannot encode.
    return text.encode("utf-8", "replace")


@cache
def _make_environment() -> Environment:
    made = Environment(
        loader=PackageLoader(*TEMPLATES),
        autoescape=True,
        # A misspelled attribute must fail a test instead of printing nothing.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters.update(
        sanitize=sanitize,
        flatten=flatten,
        moment=format_moment,
        python=highlight_python,
        prose=mark_code,
        href=href,
        upstream=find_thread_url,
        case_page=case_page,
        culprit=format_culprit,
        commit_url=_find_commit_url,
        repro_file=repro_file,
    )
    made.globals["plural"] = plural
    made.globals["version"] = __version__
    made.globals["letters"] = {str(verdict): letter for verdict, letter in LETTERS.items()}
    return made


def _find_commit_url(commit: CulpritCommit) -> str:
    """Return the address of a commit of jax; evidence comes from elsewhere, so its URL is not used.

    Empty for another package.
    """
    return find_thread_url(f"{JAX_THREADS}@{commit.hash}") if commit.package == "jax" else ""


def _finalize(value: object) -> object:
    """Return a printed value sanitized, unless it is markup."""
    # Every `{{ }}` passes here, so no template can forget it for a text of an untrusted run.
    return sanitize(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=1024)
def highlight_python(code: str) -> Markup:
    """Return Python source as highlighted markup."""
    return Markup(highlight(sanitize(code), PythonLexer(), HtmlFormatter(nowrap=True)))  # noqa: S704 - pygments escapes


def mark_code(text: str) -> Markup:
    """Return a text as markup in which text between backticks is code."""
    parts = [escape(part) for part in sanitize(text).split("`")]
    if len(parts) % 2 == 0:  # a backtick has no counterpart
        return escape(sanitize(text))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(p) if n % 2 else p for n, p in enumerate(parts))
