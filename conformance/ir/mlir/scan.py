"""The lexical level of MLIR text: tokens, and the aliases around a module."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from conformance.ir.graph import IrSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

DEEPEST = 64
"""Limit of the nesting of attributes and types; the parser limits regions."""

QUOTED = r'"[^"\\\n]*+(?>(?:\\[^\n][^"\\\n]*+)*)"'
# Atomic groups: a malformed text must not make the pattern backtrack.
_TOKEN = re.compile(
    rf"""(?>(?:[ \t\r\n]|//[^\n]*)*)                              # space and comments
    (   {QUOTED}                                                  # "text"
    |   [-+]?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)    # -1.5e+00
    |   %[\w$.-]+(?:\#\d+)?                                       # %3#1
    |   @{QUOTED}                                                 # @"a symbol"
    |   [@^][\w$.-]+                                              # @main ^bb0
    |   [#!](?:[\w$.]|-(?!>))+                                    # #loc3 !stablehlo.token
    |   [A-Za-z_][\w$.]*                                          # a word
    |   -> | :: | \S
    |   \Z )""",
    re.VERBOSE,
)
_BRACKET = re.compile(rf'{QUOTED}|->|[<>()\[\]{{}}"]')
_CLOSES = {"<": ">", "(": ")", "[": "]", "{": "}"}
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}

_ALIAS = re.compile(r"^([#!][\w.$-]+) = ([^\n]*\S)", re.MULTILINE)
_ALIASES = re.compile(r"(?>(?:\s*+(?:[#!][\w.$-]+ = [^\n]*\S[^\n]*|//[^\n]*))*)\s*")
_MESH = re.compile(r'"sdy\.mesh"\(\)')
_RESOURCES = re.compile(r"\{-#.*?#-\}\s*\Z", re.DOTALL)
_GENERIC = "get_asm(print_generic_op_form=True, enable_debug_info=True, large_elements_limit=None)"


class Scanner:
    """A position in a text, and the token there.

    Attributes:
        text: The whole text.
        next: The token at the position, empty at the end.
        start: Position of the token.
        end: Position after the token.
        before: Position after the previous token.
        depth: Number of open brackets.
    """

    __slots__ = ("_counted", "_line", "before", "depth", "end", "next", "start", "text")

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.text = text
        self._line = first_line
        self._counted = 0
        self.depth = 0
        self.next = ""
        self.before = self.start = self.end = 0
        self.advance()

    def advance(self) -> str:
        """Move to the next token; return the current one."""
        current = self.next
        self.before = self.end
        found = _TOKEN.match(self.text, self.end)
        if found is None:
            self.fail("a token")
        self.next = found[1]
        self.start, self.end = found.span(1)
        return current

    def seek(self, position: int) -> None:
        """Move to the token at a position."""
        self.end = position
        self.advance()

    def accept(self, token: str) -> bool:
        """Step over a token if it is next; return whether it was."""
        if self.next != token:
            return False
        self.advance()
        return True

    def expect(self, token: str) -> None:
        """Step over a token, which must be next."""
        if self.next != token:
            self.fail(f"'{token}'")
        self.advance()

    def read_string(self) -> str:
        """Step over a quoted text and return its content."""
        if self.next[:1] != '"' or len(self.next) == 1:
            self.fail("a string")
        return unescape(self.advance()[1:-1])

    def read_integer(self) -> int:
        """Step over a whole number."""
        try:
            number = int(self.next)
        except ValueError:
            self.fail("a whole number")
        self.advance()
        return number

    def read_word(self) -> str:
        """Step over a bare word."""
        if not (self.next[:1].isalpha() or self.next[:1] == "_"):
            self.fail("a word")
        return self.advance()

    def read_symbol(self) -> str:
        """Step over `@name` and return the name."""
        if self.next[:1] != "@" or len(self.next) == 1:
            self.fail("a symbol")
        name = self.advance()[1:]
        return unescape(name[1:-1]) if name[0] == '"' else name

    def expect_field(self, name: str) -> None:
        """Step over `name =`."""
        self.expect(name)
        self.expect("=")

    def read_list(self, opening: str, closing: str, read: Callable[[], T]) -> list[T]:
        """Step over a list in brackets, and return its items.

        Raises:
            IrSyntaxError: If the text is anything else, or nested too deeply.
        """
        self.enter()
        self.expect(opening)
        found: list[T] = []
        # A closing bracket ends an empty list, but may not follow a comma.
        while self.next != closing or found:
            found.append(read())
            if not self.accept(","):
                break
        self.expect(closing)
        self.leave()
        return found

    def open_nested(self, text: str, line: int) -> Scanner:
        """Return a scanner of the text of an alias, a level deeper."""
        # The depth continues, so that aliases which name each other reach the limit.
        inner = Scanner(text, line)
        inner.depth = self.depth
        inner.enter()
        return inner

    def enter(self) -> None:
        """Count an opening bracket.

        Raises:
            IrSyntaxError: If too many are open.
        """
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"brackets nested at most {DEEPEST} deep")

    def leave(self) -> None:
        """Count a closing bracket."""
        self.depth -= 1

    def read_brackets(self) -> str:
        """Step over the next bracket and its content, and return the content."""
        # By characters, not tokens: a constant may have millions of digits.
        begin, text = self.start, self.text
        position = begin
        open_: list[str] = []
        while True:
            found = _BRACKET.search(text, position)
            if found is None or found[0] == '"':
                self.seek(len(text) if found is None else found.start())
                self.fail(f"'{open_[-1]}'" if open_ else "a bracket")
            position = found.end()
            mark = found[0]
            if mark in _CLOSES:
                open_.append(_CLOSES[mark])
            elif open_ and mark == open_[-1]:
                open_.pop()
            elif len(mark) == 1:
                self.seek(found.start())
                self.fail(f"'{open_[-1]}'" if open_ else "a bracket")
            if not open_:
                self.seek(position)
                return text[begin + 1 : position - 1]

    @property
    def line(self) -> int:
        """Number of the line of the token."""
        return self.find_line(self.start)

    def find_line(self, position: int) -> int:
        """Return the line of a position; it counts from the position of the last call."""
        # Counting from the start of the text each time would be quadratic.
        if position >= self._counted:
            self._line += self.text.count("\n", self._counted, position)
        else:
            self._line -= self.text.count("\n", position, self._counted)
        self._counted = position
        return self._line

    def fail(self, expected: str) -> NoReturn:
        """Report the current token and the expected text.

        Raises:
            IrSyntaxError: Always.
        """
        got = f"'{self.next[:60]}'" if self.next else "the end"
        raise IrSyntaxError(f"stablehlo line {self.line}: got {got}, expected {expected}")


def unescape(text: str) -> str:
    r"""Return the content of a quoted text: `\22` is a quotation mark; other bytes are Latin-1."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(
        lambda found: (
            bytes.fromhex(found[1].decode()) if found[1] else _LETTERS.get(found[2], found[2])
        ),
        text.encode("utf-8", "surrogatepass"),
    )
    # A text may hold raw bytes, such as the bytecode of a kernel; Latin-1 keeps each of them.
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class TextHeader(NamedTuple):
    """The aliases of a text, found before it is parsed.

    Attributes:
        start: Position of the module.
        locations: Text and position of each location alias, such as `#loc12`.
        attributes: Text of each attribute alias, such as `#name`.
        types: Text of each type alias, such as `!name`.
        meshes: Positions of the definitions of meshes, which may follow their uses.
    """

    start: int
    locations: dict[str, tuple[str, int]]
    attributes: dict[str, str]
    types: dict[str, str]
    meshes: list[int]

    @staticmethod
    def find(text: str) -> TextHeader:
        """Find the aliases of a text.

        Raises:
            IrSyntaxError: If the text is empty or in another language.
        """
        aliases = _ALIASES.match(text)
        start = aliases.end() if aliases is not None else 0
        if not text.startswith('"builtin.module"', start):
            _refuse(text, start)
        locations: dict[str, tuple[str, int]] = {}
        attributes: dict[str, str] = {}
        types: dict[str, str] = {}
        for found in _ALIAS.finditer(text):
            name, meaning = found.groups()
            if meaning.startswith("loc("):
                locations[name] = (meaning, found.start(2))
            else:
                (attributes if name[0] == "#" else types)[name] = meaning
        meshes = [found.end() for found in _MESH.finditer(text)]
        return TextHeader(start, locations, attributes, types, meshes)


def check_rest(scan: Scanner) -> None:
    """Check that only aliases and resources follow the module.

    Raises:
        IrSyntaxError: If anything else follows.
    """
    aliases = _ALIASES.match(scan.text, scan.start)
    end = scan.start if aliases is None else aliases.end()
    if end < len(scan.text) and _RESOURCES.match(scan.text, end) is None:
        scan.seek(end)
        scan.fail("the end")


def _refuse(text: str, start: int) -> None:
    # Each message for a mistake that users make: the pretty form, or the wrong IR.
    scan = Scanner(text)
    scan.seek(start)
    if not scan.next:
        scan.fail("a module; the text is empty")
    if scan.next == "module":
        scan.fail(f"'\"builtin.module\"': the generic form, as operation.{_GENERIC} prints it")
    if scan.next == "HloModule":
        scan.fail("StableHLO in MLIR's generic form; this is HLO")
    scan.fail(f"'\"builtin.module\"', as operation.{_GENERIC} prints it")
