"""Attributes and types of a kernel, as plain immutable values.

Those of MLIR's builtin dialect have documented encodings. The other dialects store theirs as text,
which is their value; a binary encoding of another dialect is not understood.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

from conformance.ir.fingerprint import spell_type
from conformance.ir.graph import Opaque, Tensor
from conformance.ir.kernels.affine_maps import read_affine_map
from conformance.ir.kernels.bytecode import BytecodeError, Container, Cursor, StoredEntry, lookup
from conformance.ir.mlir import literals
from conformance.ir.mlir.tensors import convert_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Attribute, Type

T = TypeVar("T")

DEEPEST: Final = 64
"""Limit of the nesting of attributes and types."""
LARGEST: Final = 1 << 16
"""Limit of the parts of an attribute or type; a part in several places counts several times."""
_DYNAMIC: Final = -(1 << 63)
_SIGNS: Final = ["i", "si", "ui"]
_FLOATS: Final = ("bf16", "f16", "f32", "f64", "f80", "f128")
_WIDTHS: Final = {"pred": 1, "bf16": 16, "tf32": 19}
_NUMBER: Final = re.compile(r"(?:[su]|si|f)(\d{1,7})")
# How brackets are written within a type that is itself an element type.
_NESTED: Final = str.maketrans({**dict.fromkeys("[]{}()<>", "|"), ",": ";", " ": None})
_BYTE, _WORD = 8, 64
_SPACE: Final = re.compile(r"#\w+\.memory_space\((\w+)\)")
_IDENTITY: Final = re.compile(r"affine_map\(\(([^()]*)\) : \(([^()]*)\)\)")
_ANGLES: Final = str.maketrans("<>", "()")
_KIND: Final = re.compile(r"(?:memref|tensor|vector)<(\S+)(?: .*)?>")
_LOCATION: Final = "loc"


def hash_bytes(data: bytes) -> Opaque:
    """Return the digest of bytes that are not understood, as an attribute."""
    return Opaque(f"sha256:{sha256(data).hexdigest()[:24]} of {len(data)} bytes")


class KernelValues:
    """The attributes and types of a kernel, decoded when they are first used.

    Attributes:
        not_understood: Descriptions of the values that were kept as a digest, with their counts.
    """

    def __init__(self, container: Container) -> None:
        self.not_understood: Counter[str] = Counter()
        self._container = container
        self._attributes: dict[int, tuple[Attribute, int]] = {}
        self._types: dict[int, tuple[Type, int]] = {}
        self._depth = self._size = 0
        attributes, text = self._read_attributes, self._read_text
        # By code, in the order of MLIR's BuiltinDialectBytecode.td.
        self._attribute_readers: tuple[Callable[[Cursor], Attribute], ...] = (
            lambda c: tuple(attributes(c)),
            lambda c: tuple(sorted(self._read_pairs(c), key=lambda pair: pair[0])),
            text,
            # A string with a type: the type must be read, and has no meaning.
            lambda c: (text(c), self._read_type(c))[0],
            lambda c: f"@{self._read_attribute(c)}",
            lambda c: "::".join([f"@{self._read_attribute(c)}", *map(str, attributes(c))]),
            self._read_type,
            lambda _: True,
            self._read_integer,
            self._read_float,
            # Six kinds of locations: they differ with every checkout of the kernel's source.
            *[lambda _: _LOCATION] * 6,
            self._skip,
            self._read_array,
            self._read_elements,
            *[self._skip] * 3,
            lambda _: _LOCATION,
            read_affine_map,
        )
        self._type_readers: tuple[Callable[[Cursor], Type], ...] = (
            self._read_integer_type,
            lambda _: Tensor("index"),
            lambda c: (self._read_types(c), self._read_types(c)),
            *[lambda _, name=name: Tensor(name) for name in _FLOATS],
            lambda c: Tensor(convert_dtype(f"complex<{self._read_dtype(c)}>")),
            lambda c: self._read_memref(c, ""),
            lambda c: self._read_memref(c, self._read_space(c)),
            lambda _: Tensor("none"),
            lambda c: self._read_tensor(c, ""),
            lambda c: self._read_tensor(c, _render_as_type(self._read_attribute(c))),
            self._read_types,
            lambda c: Tensor(_make_container_type("memref", self._read_dtype(c)), ("*",)),
            self._read_unranked_memref,
            lambda c: Tensor(_make_container_type("tensor", self._read_dtype(c)), ("*",)),
            lambda c: self._read_shaped(c, "vector"),
        )

    def attribute(self, number: int) -> Attribute:
        """Return an attribute by its number.

        Raises:
            BytecodeError: If its encoding is unknown, too deep or too large.
        """
        table = self._container.attributes
        return self._decode_once(number, self._attributes, table, self._decode_attribute)

    def type(self, number: int) -> Type:
        """Return a type by its number.

        Raises:
            BytecodeError: If its encoding is unknown, too deep or too large.
        """
        return self._decode_once(number, self._types, self._container.types, self._decode_type)

    def get_dictionary(self, number: int) -> list[tuple[str, Attribute]]:
        """Return the names and values of a dictionary by its number.

        Raises:
            BytecodeError: If the attribute is no dictionary.
        """
        entry = lookup(self._container.attributes, number)
        cursor = Cursor(entry.data)
        if entry.is_text or entry.dialect != "builtin" or cursor.read_varint() != 1:
            raise BytecodeError("a dictionary of attributes")
        return self._read_pairs(cursor)

    def _decode_once(
        self,
        number: int,
        decoded: dict[int, tuple[T, int]],
        table: list[StoredEntry],
        decode: Callable[[StoredEntry], T],
    ) -> T:
        """Return an entry of a table, decoded at its first use.

        A known entry adds its size again: a few bytes that name each other would otherwise unfold
        to a value that no memory holds.
        """
        if number in decoded:
            self._size += decoded[number][1]
            return decoded[number][0]
        entry, before = lookup(table, number), self._size
        # An entry may contain itself only in malformed bytes; the depth ends such a cycle.
        self._size += 1
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise BytecodeError(f"attributes nested at most {DEEPEST} deep")
            found = decode(entry)
        finally:
            self._depth -= 1
        if self._size - before > LARGEST:
            raise BytecodeError(f"attributes of at most {LARGEST} parts")
        decoded[number] = found, self._size - before
        return found

    def _decode_attribute(self, entry: StoredEntry) -> Attribute:
        if entry.is_text:
            return _decode_text(entry)
        cursor = Cursor(entry.data)
        if entry.dialect == "builtin":
            code = cursor.read_varint()
            if code < len(self._attribute_readers):
                found = self._attribute_readers[code](cursor)
                # Locations are left out of the graph, so their parts are not read.
                if cursor.remaining and found != _LOCATION:
                    raise BytecodeError("the end of an attribute")
                return found
        # The digest still shows a change, though it changes with the numbering of the table, too.
        self.not_understood[f"kernel attribute of dialect {entry.dialect}"] += 1
        return hash_bytes(entry.data)

    def _decode_type(self, entry: StoredEntry) -> Type:
        if entry.is_text:
            return Tensor(convert_dtype(_decode_text(entry)))
        cursor = Cursor(entry.data)
        if entry.dialect == "builtin":
            code = cursor.read_varint()
            if code < len(self._type_readers):
                return self._type_readers[code](cursor)
        self.not_understood[f"kernel type of dialect {entry.dialect}"] += 1
        return Tensor(f"!{entry.dialect} {hash_bytes(entry.data).text}")

    def _read_attribute(self, cursor: Cursor) -> Attribute:
        return self.attribute(cursor.read_varint())

    def _read_attributes(self, cursor: Cursor) -> list[Attribute]:
        return [self.attribute(number) for number in cursor.read_varints()]

    def _read_type(self, cursor: Cursor) -> Type:
        return self.type(cursor.read_varint())

    def _read_types(self, cursor: Cursor) -> tuple[Type, ...]:
        return tuple([self.type(number) for number in cursor.read_varints()])

    def _read_text(self, cursor: Cursor) -> str:
        return lookup(self._container.strings, cursor.read_varint())

    def _read_pairs(self, cursor: Cursor) -> list[tuple[str, Attribute]]:
        found = []
        for _ in range(cursor.read_varint()):
            name, value = self._read_attribute(cursor), self._read_attribute(cursor)
            if not isinstance(name, str):
                raise BytecodeError("a name")
            found.append((name, value))
        return found

    def _read_scalar(self, cursor: Cursor) -> tuple[str, int]:
        """Read the type of a number; return it and its width in bits."""
        type_ = self._read_type(cursor)
        if not isinstance(type_, Tensor) or type_.shape:
            raise BytecodeError("a scalar type")
        return type_.dtype, _WORD if type_.dtype == "index" else _get_width(type_.dtype)

    def _read_integer(self, cursor: Cursor) -> Attribute:
        dtype, width = self._read_scalar(cursor)
        number = _read_whole(cursor, width)
        if dtype == "pred":
            return bool(number & 1)
        # The encoding is signed for every type.
        return number & ((1 << width) - 1) if dtype[0] == "u" else number

    def _read_float(self, cursor: Cursor) -> Attribute:
        dtype, width = self._read_scalar(cursor)
        bits = f"0x{_read_whole(cursor, width) & ((1 << width) - 1):x}"
        if width > _WORD or dtype == "tf32":
            return bits  # NumPy has no such type
        try:
            return literals.read_number(bits, dtype)
        except literals.LiteralError as error:
            raise BytecodeError(str(error)) from None

    def _read_array(self, cursor: Cursor) -> Attribute:
        dtype, bits = self._read_scalar(cursor)
        size, raw = cursor.read_varint(), cursor.read_blob()
        # A truth value takes a byte.
        width = bits // _BYTE or 1
        if len(raw) != size * width:
            raise BytecodeError(f"{size} elements")
        parts = [raw[place : place + width] for place in range(0, len(raw), width)]
        numbers = [int.from_bytes(p, "little", signed=dtype[0] == "s") for p in parts]
        # Floats stay bits: an array of them is rare, and bits are exact.
        if dtype[0] not in "psu":
            return tuple([f"0x{number:x}" for number in numbers])
        return tuple([bool(number) for number in numbers] if dtype == "pred" else numbers)

    def _read_elements(self, cursor: Cursor) -> Attribute:
        tensor, raw = self._read_type(cursor), cursor.read_blob()
        if not isinstance(tensor, Tensor):
            raise BytecodeError("the type of a tensor")
        if kind := _KIND.fullmatch(tensor.dtype):
            tensor = tensor._replace(dtype=kind[1])
        # A splat of truth values is stored as a byte of equal bits.
        if tensor.dtype == "pred" and raw in {b"\xff", b"\0"}:
            return str(raw != b"\0").lower(), tensor
        try:
            found = literals.read_elements(f'"0x{raw.hex()}"', tensor)
        except literals.LiteralError as error:
            raise BytecodeError(str(error)) from None
        if found is None:
            self.not_understood[f"kernel constant of {tensor.dtype}"] += 1
            return hash_bytes(raw)
        return literals.render_elements(found, tensor), tensor

    def _skip(self, cursor: Cursor) -> Attribute:
        """Return the digest of a rare attribute: a resource, sparse elements or distinct."""
        self.not_understood["kernel attribute of dialect builtin"] += 1
        return hash_bytes(cursor.read_bytes(cursor.remaining))

    def _read_integer_type(self, cursor: Cursor) -> Tensor:
        number = cursor.read_varint()
        return Tensor(convert_dtype(f"{lookup(_SIGNS, number & 3)}{number >> 2}"))

    def _read_dtype(self, cursor: Cursor) -> str:
        """Read the type of elements; return it as part of another."""
        inner = self._read_type(cursor)
        if isinstance(inner, Tensor) and inner == Tensor(inner.dtype):
            return inner.dtype
        # Brackets would confuse the parser of the golden text, which ends a dtype at them.
        return spell_type(inner).translate(_NESTED)

    def _read_space(self, cursor: Cursor) -> str:
        text = _render_as_type(self._read_attribute(cursor))
        found = _SPACE.fullmatch(text)
        return text if found is None else found[1]

    def _read_shaped(self, cursor: Cursor, kind: str = "") -> Tensor:
        sizes = [cursor.read_signed() for _ in range(cursor.read_varint())]
        if any(size < 0 and size != _DYNAMIC for size in sizes):
            raise BytecodeError("sizes that are not negative")
        dtype = self._read_dtype(cursor)
        shape = tuple(["?" if size == _DYNAMIC else size for size in sizes])
        return Tensor(_make_container_type(kind, dtype) if kind else dtype, shape)

    def _read_tensor(self, cursor: Cursor, encoding: str) -> Tensor:
        tensor = self._read_shaped(cursor)
        if tensor.shape and not encoding:
            return tensor
        # Without a shape it would look like a scalar.
        return tensor._replace(dtype=_make_container_type("tensor", tensor.dtype, encoding))

    def _read_memref(self, cursor: Cursor, space: str) -> Tensor:
        tensor = self._read_shaped(cursor)
        layout = _render_as_type(self._read_attribute(cursor))
        # Some releases write the identity layout and others leave it out.
        found = _IDENTITY.fullmatch(layout)
        if found is not None and found[1] == found[2]:
            layout = ""
        return tensor._replace(dtype=_make_container_type("memref", tensor.dtype, space, layout))

    def _read_unranked_memref(self, cursor: Cursor) -> Tensor:
        space, dtype = self._read_space(cursor), self._read_dtype(cursor)
        return Tensor(_make_container_type("memref", dtype, space), ("*",))


def _make_container_type(container: str, *details: str) -> str:
    """Return the element type of a container with its details, e.g. `memref<f32 vmem>`."""
    return f"{container}<{' '.join(filter(None, details))}>"


def _render_as_type(value: Attribute) -> str:
    """Return an attribute as a part of a type, without angle brackets."""
    text = value if isinstance(value, str) else repr(value)
    return text.replace("->", ":").translate(_ANGLES)


def _decode_text(entry: StoredEntry) -> str:
    text = Cursor(entry.data).read_terminated()
    if len(text) + 1 != len(entry.data):
        raise BytecodeError("the end of a text")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise BytecodeError("a text") from None


def _get_width(dtype: str) -> int:
    """Return the width of a number in bits."""
    if dtype in _WIDTHS:
        return _WIDTHS[dtype]
    found = _NUMBER.match(dtype)
    if found is None or not int(found[1]):
        raise BytecodeError("a type of numbers")
    return int(found[1])


def _read_whole(cursor: Cursor, width: int) -> int:
    """Read a signed number of a width in bits."""
    if width <= _BYTE:
        number = cursor.read_byte() & ((1 << width) - 1)
        return number - (1 << width) if number >> (width - 1) and width > 1 else number
    if width <= _WORD:
        return cursor.read_signed()
    number = 0
    for place in range(cursor.read_varint()):
        number |= (cursor.read_signed() & ((1 << _WORD) - 1)) << (_WORD * place)
    return number - (1 << width) if number >> (width - 1) else number
