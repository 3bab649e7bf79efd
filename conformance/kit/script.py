"""Run a Python script as Python would, and note what ended it.

    python script.py NOTE SCRIPT [ARGUMENT ...]

It is run as a file, before anything of ours or jax's is imported, so that the script may set what
must be set first. An exception is noted as JSON in the file NOTE, and ends the process as ever.
"""

import json
import os
import runpy
import sys
import traceback


def main() -> None:
    """Run the script that the command line names."""
    note, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))  # noqa: PTH100, PTH120 - start-up time
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        with open(note, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
            json.dump(described(error, script), file)
        raise


def described(error: BaseException, script: str) -> "dict[str, str]":
    """Return an exception as plain data.

    Args:
        error: The exception.
        script: File of the script; `where` is the last line of it that took part.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == script]
    if isinstance(error, SyntaxError) and error.filename == script:
        where = f"{script}:{error.lineno}"
    else:
        where = f"{script}:{own[-1].lineno}" if own else ""
    try:
        message = str(error)
    except Exception as worse:  # noqa: BLE001 - whatever its message raises
        message = f"(no message: {type(worse).__name__} while it was made)"
    return {"type": type(error).__name__, "message": message, "where": where}


if __name__ == "__main__":
    main()
