"""Modules of the standard library, of every Python that a cell may have."""

from __future__ import annotations

import sys
from typing import Final

STANDARD_LIBRARY: Final = sys.stdlib_module_names | {
    # Since 3.11, 3.12 and 3.13 they are gone; a cell may have an older Python than the harness.
    *("binhex", "asynchat", "asyncore", "distutils", "imp", "smtpd"),
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap"),
    *("msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau"),
    *("telnetlib", "uu", "xdrlib"),
}  # fmt: skip
"""Names of top-level modules that some Python from 3.10 on has: no package of an index."""
