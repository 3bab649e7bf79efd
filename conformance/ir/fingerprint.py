"""Fingerprints: hashes that ignore the order of instructions and count duplicates.

The hash of an instruction covers its operation, the computations that it calls and, through the
hashes of its operands, everything that it depends on (a Merkle tree). The hash of a computation
covers its results and the *multiset* of its instructions: a Merkle root alone cannot see that work
is done twice.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING

from conformance.ir.graph import Tensor
from conformance.ir.vocabulary import COLLECTIVES, SIDE_EFFECTS, is_commutative

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Instruction, Module, Type

# Ninety-six bits: two of a billion different modules share a fingerprint with probability 1e-11.
SIZE = 12
"""Bytes of a hash."""


def digest(data: bytes) -> bytes:
    """Return the hash of some bytes."""
    return blake2b(data, digest_size=SIZE).digest()


class Fingerprints:
    """Hashes of the instructions and computations of a module.

    Args:
        commutative: Whether to ignore the order of operands of commutative operations.

    Attributes:
        instructions: Hash of each instruction.
        computations: Hash of each computation, by its id.
    """

    def __init__(self, *, commutative: bool = False) -> None:
        self.instructions: dict[Instruction, bytes] = {}
        self.computations: dict[int, bytes] = {}
        self._commutative = commutative
        self._labels: dict[tuple[str, int, int], bytes] = {}
        self._attributes: dict[int, bytes] = {}
        self._alive: list[object] = []

    def hash_label(self, instruction: Instruction) -> bytes:
        """Return the hash of an instruction's operation, type and attributes."""
        # Types and attribute dictionaries are shared by many instructions: comparing ids avoids
        # hashing their content again for each of them.
        key = (instruction.op, id(instruction.type), id(instruction.attributes))
        found = self._labels.get(key)
        if found is None:
            text = f"{instruction.op}{spell_type(instruction.type)}"
            found = digest(text.encode() + self._encode_attributes(instruction.attributes))
            self._labels[key] = found
            # The key holds ids, which another object may get once these are collected.
            self._alive += [instruction.type, instruction.attributes]
        return found

    def is_commutative(self, instruction: Instruction) -> bool:
        """Whether these hashes ignore the order of an instruction's operands."""
        return self._commutative and is_commutative(instruction)

    def add_instruction(self, instruction: Instruction) -> bytes:
        """Hash an instruction after its operands and bodies."""
        of = self.instructions
        if instruction.operands:
            operands = [
                of[operand] + b"%r" % (path,) if path else of[operand]
                for operand, path in zip(instruction.operands, instruction.paths, strict=True)
            ]
            if self._commutative and is_commutative(instruction):
                # Sorted by hash: the order of the text must not show in the result.
                operands.sort()
            data = self.hash_label(instruction) + b"".join(operands)
        else:
            data = self.hash_label(instruction)
        # The hash of a body, not its name: XLA renames computations from release to release.
        for role, inner in instruction.bodies:
            data += role.encode() + self.computations[id(inner)]
        found = blake2b(data, digest_size=SIZE).digest()
        of[instruction] = found
        return found

    def add_computation(self, computation: Computation) -> bytes:
        """Hash a computation and its instructions, after its callees."""
        for instruction in computation.instructions:
            self.add_instruction(instruction)
        return self.finish_computation(computation)

    def finish_computation(self, computation: Computation) -> bytes:
        """Hash a computation after its instructions."""
        results = b"".join(
            self.instructions[i] + b"%r" % (path,) for i, path in computation.results
        )
        # Sorted, because the schedule of a module is the choice of its compiler.
        hashes = sorted(self.instructions[i] for i in computation.instructions)
        # Equal instructions have equal hashes, so their readers decide which one is which.
        if len(set(hashes)) < len(hashes):
            hashes += self._hash_twins(computation)
        everything = b"".join(hashes) + self._encode_attributes(computation.attributes)
        # The separator keeps results apart from instructions: both are rows of hashes.
        found = digest(results + b"|" + everything)
        self.computations[id(computation)] = found
        self._alive.append(computation)
        return found

    def _hash_twins(self, computation: Computation) -> list[bytes]:
        """Hash the readers of equal instructions with effects, such as collectives."""
        of = self.instructions
        counts = Counter(of[node] for node in computation.instructions)
        # Pure twins are one value to their readers, and the canonical form merges them.
        twins: dict[Instruction, list[bytes]] = {
            node: []
            for node in computation.instructions
            if counts[of[node]] > 1 and (node.op in COLLECTIVES or node.op in SIDE_EFFECTS)
        }
        if not twins:
            return []
        for reader in computation.instructions:
            unordered = self.is_commutative(reader)
            for place, operand in enumerate(reader.operands):
                if operand in twins:
                    twins[operand].append(of[reader] + (b"" if unordered else b"%d" % place))
        for place, (producer, _) in enumerate(computation.results):
            if producer in twins:
                twins[producer].append(b"result %d" % place)
        # Sorted twice: neither the readers of a twin nor the twins have an order.
        return sorted(of[node] + digest(b"".join(sorted(read))) for node, read in twins.items())

    def _encode_attributes(self, attributes: dict[str, Attribute]) -> bytes:
        if not attributes:
            return b""
        found = self._attributes.get(id(attributes))
        if found is None:
            # Sorted by name alone, because values of different types have no order.
            found = repr(sorted(attributes.items(), key=itemgetter(0))).encode(
                "utf-8", "surrogatepass"
            )
            self._attributes[id(attributes)] = found
            self._alive.append(attributes)
        return found


def spell_type(type_: Type) -> str:
    """Return a type as text, e.g. `f32[2,16]` or `(f32[], s32[4])S(5)`.

    Goldens hold hashes of this text: it must never change.
    """
    if not isinstance(type_, Tensor):
        return f"({', '.join(spell_type(part) for part in type_)})"
    space = f"S({type_.space})" if type_.space else ""
    layout = f"{{{type_.layout}}}" if type_.layout else ""
    return f"{type_.dtype}[{','.join(map(str, type_.shape))}]{layout}{space}"


def hash_module(module: Module, *, commutative: bool = False) -> Fingerprints:
    """Hash all computations that a module uses.

    Args:
        module: The module, its regions closed.
        commutative: See `Fingerprints`.

    Returns:
        The hashes.

    Raises:
        IrSyntaxError: If a computation calls itself.
    """
    hashes = Fingerprints(commutative=commutative)
    for computation in module.find_reachable():
        hashes.add_computation(computation)
    return hashes


def fingerprint(module: Module, hashes: Fingerprints) -> str:
    """Return the fingerprint of a module, 24 hexadecimal digits.

    Args:
        module: The module.
        hashes: The hashes of its computations.
    """
    header = repr(sorted(module.attributes.items(), key=itemgetter(0))).encode(
        "utf-8", "surrogatepass"
    )
    # The header counts: donation is an attribute of the module, not of an instruction.
    return digest(module.kind.encode() + header + hashes.computations[id(module.entry)]).hex()
