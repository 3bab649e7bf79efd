"""Entries of the shared cache: what was stored, or a miss."""

from __future__ import annotations

import hashlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from conformance.remote_cache.entry import (
    LARGEST_CONTENT,
    DamagedEntryError,
    Namespace,
    OversizedEntryError,
    decode_entry,
    encode_entry,
    make_path,
    parse_path,
)

KEY = "jobs/kit-host/" + "a" * 32
ACTION = Namespace.ACTIONS


@given(st.binary(max_size=300))
def test_entries_round_trip(content: bytes) -> None:
    """Of both namespaces."""
    name = hashlib.sha256(content).hexdigest()[:32]
    for namespace, key in ((ACTION, KEY), (Namespace.CONTENT, name)):
        assert decode_entry(namespace, key, encode_entry(namespace, key, content)) == content


@given(st.binary(min_size=1, max_size=60), st.data())
def test_any_changed_byte_is_a_miss(content: bytes, data: st.DataObject) -> None:
    """Also one that leaves the content as it was, and a cut entry."""
    entry = bytearray(encode_entry(ACTION, KEY, content))
    place = data.draw(st.integers(0, len(entry) - 1))
    entry[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedEntryError):
        decode_entry(ACTION, KEY, bytes(entry))
    entry = bytearray(encode_entry(ACTION, KEY, content))
    with pytest.raises(DamagedEntryError):
        decode_entry(ACTION, KEY, bytes(entry[:place]))


def test_an_entry_of_another_key_is_a_miss() -> None:
    """So is one of another namespace."""
    entry = encode_entry(ACTION, KEY, b"record")
    other = KEY.replace("a", "b")
    with pytest.raises(DamagedEntryError, match="digest"):
        decode_entry(ACTION, other, entry)
    with pytest.raises(DamagedEntryError, match="digest"):
        decode_entry(Namespace.CONTENT, "a" * 32, entry)


def test_a_content_of_another_name_is_a_miss() -> None:
    """Even if its entry is well-formed: a writer may store anything."""
    with pytest.raises(DamagedEntryError, match="another name"):
        decode_entry(Namespace.CONTENT, "a" * 32, encode_entry(Namespace.CONTENT, "a" * 32, b"x"))


def test_an_entry_of_another_schema_is_a_miss() -> None:
    """It is reported as such."""
    entry = encode_entry(ACTION, KEY, b"record").replace(b"cache 1 ", b"cache 2 ", 1)
    with pytest.raises(DamagedEntryError, match="schema version"):
        decode_entry(ACTION, KEY, entry)


def test_decompression_is_bounded() -> None:
    """A frame may not expand beyond the size of its line, nor the size beyond the limit."""
    frame = zstandard.compress(bytes(1 << 20))
    for size in (10, LARGEST_CONTENT + 1):
        facts = f"conformance-cache 1 actions {KEY} {size}".encode()
        digest = hashlib.sha256(facts + b"\n" + frame).hexdigest().encode()
        with pytest.raises(DamagedEntryError):
            decode_entry(ACTION, KEY, facts + b" " + digest + b"\n" + frame)


def test_a_content_that_is_too_large_is_not_stored() -> None:
    """Neither plain nor compressed."""
    with pytest.raises(OversizedEntryError):
        encode_entry(ACTION, KEY, bytes(LARGEST_CONTENT + 1))


@pytest.mark.parametrize("key", ["../" + "a" * 32, "a" * 31, "A" * 32, "", "a" * 32 + "/b"])
def test_a_malformed_name_has_no_path(key: str) -> None:
    """Records are untrusted input, and name contents."""
    with pytest.raises(ValueError, match="key"):
        make_path(Namespace.CONTENT, key)


def test_paths_are_parsed() -> None:
    """Other objects of a bucket have none."""
    for namespace, key in ((ACTION, KEY), (Namespace.CONTENT, "b" * 32)):
        assert parse_path(make_path(namespace, key)) == (namespace, key)
    for path in ("v2/content/bb/" + "b" * 32, "v1/content/cc/" + "b" * 32, "readme", "v1/x/y"):
        assert parse_path(path) is None
