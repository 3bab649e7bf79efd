"""Attributes and types of a kernel, as plain immutable values.

Those of MLIR's builtin dialect have documented encodings. The other dialects' are spelled out, and
their spelling is their value; one with an encoding of its own is not understood.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

from conformance.ir.fingerprint import spelled
from conformance.ir.graph import Opaque, Tensor
from conformance.ir.kernels.affine import affine_map
from conformance.ir.kernels.container import Container, StoredEntry, at
from conformance.ir.kernels.cursor import Cursor, NotReadError
from conformance.ir.mlir import literals
from conformance.ir.mlir.tensors import element

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Attribute, Type

T = TypeVar("T")

DEEPEST: Final = 64
"""How deep attributes and types may nest."""
LARGEST: Final = 1 << 16
"""How many parts one may have, those counted that occur in several places."""
_DYNAMIC: Final = -(1 << 63)
_SIGNS: Final = ("i", "si", "ui")
_FLOATS: Final = ("bf16", "f16", "f32", "f64", "f80", "f128")
_WIDTHS: Final = {"f16": 16, "bf16": 16, "f32": 32, "tf32": 19, "f64": 64, "f80": 80, "f128": 128}
_NESTED: Final = str.maketrans({**dict.fromkeys("[]{}()<>", "|"), ",": ";", " ": None})
"""How brackets are written within a type that is itself an element type."""
_BYTE, _WORD = 8, 64
_SPACE: Final = re.compile(r"#\w+\.memory_space\((\w+)\)")
_IDENTITY: Final = re.compile(r"affine_map\(\(([^()]*)\) : \(([^()]*)\)\)")
_ANGLES: Final = str.maketrans("<>", "()")
_KIND: Final = re.compile(r"(?:memref|tensor|vector)<(\S+)(?: .*)?>")
_NOWHERE: Final = "loc"


def digest(data: bytes) -> Opaque:
    """Return what stands for bytes that are not understood."""
    return Opaque(f"sha256:{sha256(data).hexdigest()[:24]} of {len(data)} bytes")


class KernelValues:
    """The attributes and types of one kernel, read when they are asked for.

    Attributes:
        not_understood: What was kept as the digest of its bytes.
    """

    def __init__(self, container: Container) -> None:
        self.not_understood: Counter[str] = Counter()
        self._of = container
        self._attributes: dict[int, tuple[Attribute, int]] = {}
        self._types: dict[int, tuple[Type, int]] = {}
        self._depth = self._size = 0
        read = self._references
        self._read_attribute: tuple[Callable[[Cursor], Attribute], ...] = (
            lambda c: tuple(read(c)),
            self._dictionary,
            self._string,
            lambda c: (self._string(c), self._type_of(c))[0],
            lambda c: f"@{self._reference(c)}",
            lambda c: "::".join([f"@{self._reference(c)}", *map(str, read(c))]),
            self._type_of,
            lambda _: True,
            self._integer,
            self._float,
            *[lambda _: _NOWHERE] * 6,
            self._not_known,
            self._array,
            self._elements,
            *[self._not_known] * 3,
            lambda _: _NOWHERE,
            affine_map,
        )
        self._read_type: tuple[Callable[[Cursor], Type], ...] = (
            self._integer_type,
            lambda _: Tensor("index"),
            lambda c: (self._type_list(c), self._type_list(c)),
            *[lambda _, name=name: Tensor(name) for name in _FLOATS],
            self._complex_type,
            lambda c: self._memory(c, ""),
            lambda c: self._memory(c, self._space(c)),
            lambda _: Tensor("none"),
            lambda c: self._tensor(c, ""),
            lambda c: self._tensor(c, _text(self._reference(c))),
            self._type_list,
            lambda c: Tensor(_kind("memref", self._element(c)), ("*",)),
            lambda c: Tensor(_kind("memref", *(self._space(c), self._element(c))[::-1]), ("*",)),
            lambda c: Tensor(_kind("tensor", self._element(c)), ("*",)),
            lambda c: self._read_shaped(c, "vector"),
        )

    def attribute(self, number: int) -> Attribute:
        """Return an attribute.

        Raises:
            NotReadError: If it is not as documented, or too deep or large.
        """
        return self._once(number, self._attributes, self._of.attributes, self._attribute)

    def type(self, number: int) -> Type:
        """Return a type.

        Raises:
            NotReadError: If it is not as documented, or too deep or large.
        """
        return self._once(number, self._types, self._of.types, self._type)

    def named(self, number: int) -> list[tuple[str, Attribute]]:
        """Return a dictionary's names and values.

        Raises:
            NotReadError: If it is none.
        """
        entry = at(self._of.attributes, number)
        cursor = Cursor(entry.data)
        if entry.is_text or entry.dialect != "builtin" or cursor.varint() != 1:
            raise NotReadError("a dictionary of attributes")
        return self._pairs(cursor)

    def _once(
        self,
        number: int,
        known: dict[int, tuple[T, int]],
        table: list[StoredEntry],
        read: Callable[[StoredEntry], T],
    ) -> T:
        """Return an entry of a table, read one level down; counted again where it is known."""
        if number not in known:
            entry, before = at(table, number), self._size
            self._size += 1
            self._depth += 1
            try:
                if self._depth > DEEPEST:
                    raise NotReadError(f"attributes nested at most {DEEPEST} deep")
                found = read(entry)
            finally:
                self._depth -= 1
            if self._size - before > LARGEST:
                raise NotReadError(f"attributes of at most {LARGEST} parts")
            known[number] = found, self._size - before
        else:
            self._size += known[number][1]
        return known[number][0]

    def _attribute(self, entry: StoredEntry) -> Attribute:
        if entry.is_text:
            return _spelling(entry)
        cursor = Cursor(entry.data)
        if entry.dialect == "builtin":
            code = cursor.varint()
            if code < len(self._read_attribute):
                found = self._read_attribute[code](cursor)
                if cursor.left and found != _NOWHERE:
                    raise NotReadError("the end of an attribute")
                return found
        self.not_understood[f"kernel attribute of dialect {entry.dialect}"] += 1
        return digest(entry.data)

    def _type(self, entry: StoredEntry) -> Type:
        if entry.is_text:
            return Tensor(element(_spelling(entry)))
        cursor = Cursor(entry.data)
        if entry.dialect == "builtin":
            code = cursor.varint()
            if code < len(self._read_type):
                return self._read_type[code](cursor)
        self.not_understood[f"kernel type of dialect {entry.dialect}"] += 1
        return Tensor(f"!{entry.dialect} {digest(entry.data).text}")

    def _reference(self, cursor: Cursor) -> Attribute:
        return self.attribute(cursor.varint())

    def _references(self, cursor: Cursor) -> list[Attribute]:
        return [self.attribute(number) for number in cursor.varints()]

    def _type_of(self, cursor: Cursor) -> Type:
        return self.type(cursor.varint())

    def _type_list(self, cursor: Cursor) -> tuple[Type, ...]:
        return tuple([self.type(number) for number in cursor.varints()])

    # Attributes

    def _pairs(self, cursor: Cursor) -> list[tuple[str, Attribute]]:
        found = []
        for _ in range(cursor.varint()):
            name, value = self._reference(cursor), self._reference(cursor)
            if not isinstance(name, str):
                raise NotReadError("a name")
            found.append((name, value))
        return found

    def _dictionary(self, cursor: Cursor) -> Attribute:
        return tuple(sorted(self._pairs(cursor), key=lambda pair: pair[0]))

    def _string(self, cursor: Cursor) -> str:
        return at(self._of.strings, cursor.varint())

    def _integer(self, cursor: Cursor) -> Attribute:
        dtype = _scalar(self._type_of(cursor))
        width = _WORD if dtype == "index" else _width(dtype)
        number = _whole(cursor, width)
        if dtype == "pred":
            return bool(number & 1)
        return number & ((1 << width) - 1) if dtype[0] == "u" else number

    def _float(self, cursor: Cursor) -> Attribute:
        dtype = _scalar(self._type_of(cursor))
        width = _width(dtype)
        bits = _whole(cursor, width) & ((1 << width) - 1)
        if width > _WORD or dtype == "tf32":
            return f"0x{bits:x}"
        try:
            return literals.number(f"0x{bits:x}", dtype)
        except literals.NotALiteral as error:
            raise NotReadError(str(error)) from None

    def _array(self, cursor: Cursor) -> Attribute:
        dtype = _scalar(self._type_of(cursor))
        size, raw = cursor.varint(), cursor.blob()
        width = _width(dtype) // _BYTE or 1
        if len(raw) != size * width:
            raise NotReadError(f"{size} elements")
        parts = [raw[place : place + width] for place in range(0, len(raw), width)]
        if dtype[0] not in "psu":
            return tuple([f"0x{int.from_bytes(part, 'little'):x}" for part in parts])
        numbers = [int.from_bytes(p, "little", signed=dtype[0] == "s") for p in parts]
        return tuple([bool(n) for n in numbers] if dtype == "pred" else numbers)

    def _elements(self, cursor: Cursor) -> Attribute:
        tensor, raw = self._type_of(cursor), cursor.blob()
        if not isinstance(tensor, Tensor):
            raise NotReadError("the type of a tensor")
        tensor = _plain(tensor)
        if tensor.dtype == "pred" and raw in {b"\xff", b"\0"}:
            return str(raw != b"\0").lower(), tensor
        try:
            found = literals.elements(f'"0x{raw.hex()}"', tensor)
        except literals.NotALiteral as error:
            raise NotReadError(str(error)) from None
        if found is None:
            self.not_understood[f"kernel constant of {tensor.dtype}"] += 1
            return digest(raw)
        return literals.text_of(found, tensor), tensor

    def _not_known(self, cursor: Cursor) -> Attribute:
        """Keep what is rare: resources, texts, sparse elements, distinct attributes."""
        self.not_understood["kernel attribute of dialect builtin"] += 1
        return digest(cursor.take(cursor.left))

    # Types

    def _integer_type(self, cursor: Cursor) -> Tensor:
        number = cursor.varint()
        sign = at(list(_SIGNS), number & 3)
        return Tensor(element(f"{sign}{number >> 2}"))

    def _complex_type(self, cursor: Cursor) -> Tensor:
        return Tensor(element(f"complex<{self._element(cursor)}>"))

    def _element(self, cursor: Cursor) -> str:
        inner = self._type_of(cursor)
        if isinstance(inner, Tensor) and inner == Tensor(inner.dtype):
            return inner.dtype
        return spelled(inner).translate(_NESTED)

    def _space(self, cursor: Cursor) -> str:
        text = _text(self._reference(cursor))
        found = _SPACE.fullmatch(text)
        return text if found is None else found[1]

    def _read_shaped(self, cursor: Cursor, kind: str = "") -> Tensor:
        sizes = [cursor.signed() for _ in range(cursor.varint())]
        shape = tuple(["?" if size == _DYNAMIC else size for size in sizes])
        if any(isinstance(size, int) and size < 0 for size in shape):
            raise NotReadError("sizes that are not negative")
        dtype = self._element(cursor)
        return Tensor(_kind(kind, dtype) if kind else dtype, shape)

    def _tensor(self, cursor: Cursor, encoding: str) -> Tensor:
        tensor = self._read_shaped(cursor)
        if tensor.shape and not encoding:
            return tensor
        # Without a shape it would look like a scalar.
        return tensor._replace(dtype=_kind("tensor", tensor.dtype, encoding))

    def _memory(self, cursor: Cursor, space: str) -> Tensor:
        tensor = self._read_shaped(cursor)
        layout = _text(self._reference(cursor))
        found = _IDENTITY.fullmatch(layout)
        if found is not None and found[1] == found[2]:
            layout = ""
        return tensor._replace(dtype=_kind("memref", tensor.dtype, space, layout))


def _kind(name: str, *details: str) -> str:
    """Return an element type that says in what it is and where: `memref<f32 vmem>`."""
    return f"{name}<{' '.join(filter(None, details))}>"


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor of the elements alone."""
    found = _KIND.fullmatch(tensor.dtype)
    return tensor if found is None else tensor._replace(dtype=found[1])


def _text(value: Attribute) -> str:
    """Return an attribute as a part of a type, without angle brackets."""
    text = value if isinstance(value, str) else repr(value)
    return text.replace("->", ":").translate(_ANGLES)


def _spelling(entry: StoredEntry) -> str:
    text = Cursor(entry.data).terminated()
    if len(text) + 1 != len(entry.data):
        raise NotReadError("the end of a text")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise NotReadError("a text") from None


def _scalar(type_: Type) -> str:
    if not isinstance(type_, Tensor) or type_.shape:
        raise NotReadError("a scalar type")
    return type_.dtype


def _width(dtype: str) -> int:
    """Return how many bits a scalar has."""
    if dtype == "pred":
        return 1
    if dtype in _WIDTHS:
        return _WIDTHS[dtype]
    found = re.match(r"(?:[su]|si|f)(\d{1,7})", dtype)
    if found is None or not int(found[1]):
        raise NotReadError("a type of numbers")
    return int(found[1])


def _whole(cursor: Cursor, width: int) -> int:
    """Read a number of so many bits, which may be negative."""
    if width <= _BYTE:
        number = cursor.byte() & ((1 << width) - 1)
        return number - (1 << width) if number >> (width - 1) and width > 1 else number
    if width <= _WORD:
        return cursor.signed()
    number = 0
    for place in range(cursor.varint()):
        number |= (cursor.signed() & ((1 << _WORD) - 1)) << (_WORD * place)
    return number - (1 << width) if number >> (width - 1) else number
