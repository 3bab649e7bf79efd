"""Run a Python script as Python does, and write the exception that ended it to a file.

    python script.py NOTE SCRIPT [ARGUMENT ...]

The script runs before jax or this package is imported, so that it may set environment variables
first. An exception is written as JSON to the file NOTE, and ends the process as usual. The flags
of the variable CONFORMANCE_XLA_FLAGS follow those that the script sets in XLA_FLAGS.
"""

import json
import os
import runpy
import sys
import traceback

FLAGS = "CONFORMANCE_XLA_FLAGS"


class _Environment(os._Environ):  # type: ignore[type-arg]  # a dict's would not do
    """The environment of a script, which keeps the given XLA flags when the script sets its own."""

    def __setitem__(self, name: str, value: str) -> None:
        more = f" {self[FLAGS]}" if name == "XLA_FLAGS" else ""
        super().__setitem__(name, value + more)


def main() -> None:
    """Run the script that the command line names."""
    if FLAGS in os.environ:
        # In place: `os.getenv` and modules that imported `environ` refer to the same object.
        os.environ.__class__ = _Environment
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "")
    note, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    # As `python SCRIPT` does: the script imports modules from its own folder.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        with open(note, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(describe_error(error, script), file)
        raise


def describe_error(error: BaseException, script: str) -> "dict[str, str]":
    """Return an exception as plain data.

    Args:
        error: Exception to describe.
        script: File of the script; `where` is its innermost line in the traceback.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == script]
    if isinstance(error, SyntaxError) and error.filename == script:
        where = f"{script}:{error.lineno}"
    else:
        where = f"{script}:{own[-1].lineno}" if own else ""
    try:
        message = str(error)
    except Exception as second:  # the `__str__` of an exception may raise
        message = f"(no message: {type(second).__name__} while it was made)"
    fields = {"type": type(error).__name__, "message": message, "where": where}
    # A message may contain lone surrogates, e.g. in the name of a file that is not UTF-8.
    return {name: t.encode("utf-8", "backslashreplace").decode() for name, t in fields.items()}


if __name__ == "__main__":
    main()
