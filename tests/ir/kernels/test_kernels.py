"""Kernels that modules embed: their decoding, equality and differences."""

from __future__ import annotations

import base64
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.ir.analysis import analyse, parse_ir
from conformance.ir.difference import diff
from conformance.ir.fingerprint import hash_module
from conformance.ir.graph import Computation, Instruction, Module, Opaque, Tensor
from conformance.ir.kernels.affine_maps import read_affine_map
from conformance.ir.kernels.bytecode import BytecodeError, Container, Cursor
from conformance.ir.kernels.dialects import get_canonical_op, order_effects
from conformance.ir.kernels.operations import KernelReader, read_kernel
from conformance.ir.normal.forms import to_canonical, to_exact
from conformance.ir.normal.text import dumps, loads
from tests.ir.kernels.samples import bodies, body, embedded, mosaic, triton

M6, M12 = "mosaic 0.6.2 ", "mosaic 0.12.0.1 "
T8, T12 = "triton 0.8.3 ", "triton 0.12.0.1 "


def structure(text: str) -> Module:
    """Return a module in the form `exact`."""
    module = parse_ir(text, "hlo")
    to_exact(module)
    return module


def call_of(module: Module) -> Instruction:
    """Return the custom call of a module."""
    return next(i for i in module.entry.instructions if i.op == "custom-call")


def function(kernel: Computation, symbol: str = "main") -> Instruction:
    """Return a function of a kernel."""
    return next(i for i in kernel.instructions if i.attributes.get("symbol") == symbol)


@pytest.mark.parametrize("name", bodies())
def test_every_sample_kernel_is_understood(name: str) -> None:
    """No part is kept as bytes."""
    module = structure(embedded(name))
    assert not module.not_understood
    assert [role for role, _ in call_of(module).bodies] == ["kernel"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (M6 + "plain", M6 + "elsewhere"),
        (T8 + "plain", T8 + "elsewhere"),
        *[(M6 + name, M12 + name) for name in ("plain", "loop", "condition")],
        *[(T8 + name, T12 + name) for name in ("plain", "loop", "repeated")],
    ],
)
def test_equal_kernels_are_equal_across_paths_and_releases(a: str, b: str) -> None:
    """Locations and stored versions differ."""
    assert diff(embedded(a), embedded(b)).equal


@pytest.mark.parametrize(
    ("a", "b", "titles"),
    [
        ("plain", "scale", ["value of arith.constant"]),
        ("plain", "subtract", ["arith.addf -> arith.subf"]),
        ("subtract", "swapped", ["operands of arith.subf"]),
        ("plain", "exp", ["math.exp added"]),
        ("plain", "late", ["operands of vector.load"]),
        ("plain", "grid", ["iteration_bounds of kernel.func"]),
        ("grid", "window", ["window_params of kernel.func"]),
        ("window", "dtype", ["type of arith.addf"]),
        ("loop", "condition", ["scf.if added"]),
        ("reduced", "largest", ["kernel_kind of vector.multi_reduction"]),
    ],
)
def test_a_change_of_a_kernel_is_reported(a: str, b: str, titles: list[str]) -> None:
    """By the names of the kernel's operations."""
    found = diff(embedded(M12 + a), embedded(M12 + b))
    assert not found.neutral_equal
    reported = " | ".join(change.title for change in found.changes)
    assert all(title in reported for title in titles), reported


def test_a_change_of_a_triton_kernel_is_reported() -> None:
    """As for Mosaic."""
    found = diff(embedded(T12 + "plain"), embedded(T12 + "scale"))
    assert [change.title for change in found.changes] == ["value of arith.constant"]


def test_operations_of_a_kernel_are_instructions() -> None:
    """With their types, and the order of memory accesses."""
    kernel = read_kernel(body(M12 + "plain"), Counter())
    [main] = [inner for _, inner in function(kernel).bodies]
    store = main.instructions[-1]
    assert store.op == "tpu.vector_store"
    assert main.results == [(store, ())]
    assert store.operands[-1].op == "vector.load"
    assert [p.type.dtype for p in main.parameters[:2]] == ["s32", "memref<f32 vmem>"]  # type: ignore[union-attr]


def test_the_entry_of_a_kernel_has_one_name() -> None:
    """Releases name it differently."""
    symbols = [
        [i.attributes["symbol"] for i in read_kernel(body(v + "plain"), Counter()).instructions]
        for v in (M6, M12)
    ]
    assert symbols[0] == symbols[1]
    assert "main" in symbols[0]


def test_regions_of_a_kernel_are_closed() -> None:
    """The body of a loop takes the values that it uses."""
    kernel = read_kernel(body(M12 + "loop"), Counter())
    [main] = [inner for _, inner in function(kernel).bodies]
    loop = next(i for i in main.instructions if i.op == "scf.for")
    [(_, inner)] = loop.bodies
    inside = set(inner.instructions)
    assert loop.attributes["captured"]
    assert all(operand in inside for i in inner.instructions for operand in i.operands)


@pytest.mark.parametrize("key", ["debug_locations", "serialization_format", "cost_estimate"])
def test_notes_in_the_configuration_are_dropped(key: str) -> None:
    """They do not describe the kernel."""
    text = bodies()[M12 + "plain"]
    assert diff(mosaic(text), mosaic(text, **{key: "TUzvUg"})).equal


@pytest.mark.parametrize("key", ["has_communication", "collective_id", "internal_scratch_in_bytes"])
def test_settings_in_the_configuration_are_compared(key: str) -> None:
    """E.g. a kernel that communicates is a different one."""
    text = bodies()[M12 + "plain"]
    assert not diff(mosaic(text), mosaic(text, **{key: 7})).neutral_equal


def test_settings_of_triton_are_compared() -> None:
    """The user chooses the number of warps."""
    data = body(T12 + "plain")
    other = triton(data, "num_stages = 3 : i32, num_warps = 8 : i32")
    assert not diff(triton(data), other).neutral_equal


@pytest.mark.parametrize("name", [M12 + "condition", M12 + "repeated", T12 + "loop"])
def test_the_text_of_a_kernel_reads_back(name: str) -> None:
    """And normalising it twice changes nothing."""
    module = structure(embedded(name))
    once = to_canonical(module)
    again = loads(dumps(module))
    assert to_exact(again)
    assert to_canonical(again) == once


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("stable_mosaic.arith.addf", "arith.addf"),
        ("stable_mosaic_gpu.gpu.launch", "gpu.launch"),
        ("stable_mosaic.func.call", "kernel.call"),
        ("tt.load", "tt.load"),
    ],
)
def test_operations_have_canonical_names(op: str, name: str) -> None:
    """Functions of a kernel are distinct from those of the module."""
    assert get_canonical_op(op) == name


def test_affine_maps_are_spelled_as_in_mlir() -> None:
    """Earlier releases store the spelling."""
    # Two dimensions, general: one symbol, two results, d1 * 8 + s0 and d0 mod 3.
    numbers = [2 << 2 | 3, 1, 2, 3, 4, 0, 1, 2, 16, 1, 0, 5, 0, 0, 2, 6]
    cursor = Cursor(bytes(number << 1 | 1 for number in numbers))
    assert read_affine_map(cursor) == "affine_map<(d0, d1)[s0] -> (d1 * 8 + s0, d0 mod 3)>"
    assert read_affine_map(Cursor(b"\x11")) == "affine_map<(d0, d1) -> (d0, d1)>"


def test_a_huge_affine_map_is_refused() -> None:
    """A few bytes must not become a long text."""
    with pytest.raises(BytecodeError, match="dimensions"):
        read_affine_map(Cursor(b"\x00" + b"\xf0" * 8))


def test_kernels_in_stablehlo_are_read() -> None:
    """The configuration is a quoted text."""
    inner = f"{{\\22body\\22: \\22{bodies()[M12 + 'plain']}\\22}}"
    config = f"{{\\22custom_call_config\\22: {inner}}}"
    text = (
        '"builtin.module"() <{sym_name = "m"}> ({\n'
        '  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "main"}> '
        "({\n  ^bb0(%arg0: tensor<8xf32>):\n"
        f'    %0 = "stablehlo.custom_call"(%arg0) <{{backend_config = "{config}", '
        'call_target_name = "tpu_custom_call"}> : (tensor<8xf32>) -> tensor<8xf32>\n'
        '    "func.return"(%0) : (tensor<8xf32>) -> ()\n  }) : () -> ()\n}) : () -> ()\n'
    )
    found = analyse(text, "stablehlo", with_text=True)
    assert "vector.load" in found.text
    assert not found.not_understood


def mosaic_gpu(path: str, value: int = 2, note: str = '"mul"') -> str:
    """Return a module whose kernel is MLIR text, as Mosaic GPU wrote it up to jax 0.8.0."""
    kernel = f"""#loc = loc("pallas_call")
"builtin.module"() <{{sym_name = "kernel"}}> ({{
^bb0(%arg0: !llvm.ptr loc("a\\"(b"), %arg1: i64 loc({note}(#loc1))):
  %0 = "stable_mosaic_gpu.arith.constant"() {{value = {value} : i32}} : () -> i32 loc(#loc)
  "stable_mosaic_gpu.func.return"() : () -> () loc("{path}":7:{value} to :9)
}}) {{name = "not loc(3)"}} : () -> () loc(unknown)
#loc1 = loc("{path}":{len(path)}:8)
"""
    text = "".join(c if c not in '"\\\n' else f"\\{ord(c):02X}" for c in kernel)
    config = f'{{kernel_hash = "{path}", module = "{text}"}}'
    return (
        "HloModule m\n\nENTRY %main {\n"
        '  ROOT %k = f32[8]{0} custom-call(), custom_call_target="mosaic_gpu_v2", '
        f"backend_config={config}\n}}\n"
    )


def test_the_text_of_a_kernel_is_compared_without_its_locations() -> None:
    """They hold the path of the file that defines the kernel."""
    text = str(call_of(structure(mosaic_gpu("/home/a.py"))).attributes["backend_config"])
    assert "home" not in text
    assert "#loc" not in text
    assert "%arg0: !llvm.ptr, %arg1: i64)" in text
    assert 'name = "not loc(3)"' in text
    assert diff(mosaic_gpu("/home/a.py"), mosaic_gpu("/elsewhere/b.py")).equal
    assert not diff(mosaic_gpu("/a.py"), mosaic_gpu("/a.py", value=3)).neutral_equal


def test_effects_in_regions_are_ordered() -> None:
    """In the region of any operation; pure operations have no place in the order."""
    space = Tensor("memref<f32>", (8,))
    memory = Instruction("p", "parameter", space, attributes={"index": 0})
    inner = Computation("region", [Instruction("s", "vector.store", (), (memory,), ((),))])
    loop = Instruction("l", "affine.for", (), bodies=(("region 0", inner),))
    load = Instruction("v", "vector.load", Tensor("f32"), (memory,), ((),))
    add = Instruction("a", "arith.addf", Tensor("f32"), (load, load), ((), ()))
    outer = Computation("f", [memory, loop, add, load])
    effectful: set[int] = set()
    order_effects(inner, effectful)
    order_effects(outer, effectful)
    assert load.operands == (memory, loop)
    assert add.operands == (load, load)
    assert outer.results == [(load, ())]


# What is not understood


def test_a_truncated_kernel_is_counted_as_not_understood() -> None:
    """And kept as a digest of its bytes."""
    data = body(M12 + "plain")[:-9]
    module = structure(mosaic(base64.b64encode(data).decode()))
    assert module.not_understood == {"kernel of tpu_custom_call": 1}
    assert isinstance(call_of(module).attributes["kernel"], Opaque)


def test_an_unknown_bytecode_version_is_counted_as_not_understood() -> None:
    """Its encodings may differ."""
    data = bytearray(body(M12 + "plain"))
    data[4] = 2 * 7 + 1
    assert structure(mosaic(base64.b64encode(data).decode())).not_understood


def test_unreadable_kernels_are_equal_only_if_their_bytes_are() -> None:
    """Their digests are compared."""
    cut = [base64.b64encode(body(M12 + n)[:-9]).decode() for n in ("plain", "scale")]
    assert diff(mosaic(cut[0]), mosaic(cut[0])).equal
    assert not diff(mosaic(cut[0]), mosaic(cut[1])).neutral_equal


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(bodies())), st.data())
def test_mutated_bytecode_raises_only_its_own_error(name: str, data: st.DataObject) -> None:
    """And yields only hashable attributes."""
    raw = bytearray(body(name))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(len(raw) // 2, 2 * len(raw))) :]
    try:
        kernel = read_kernel(bytes(raw), Counter())
    except BytecodeError:
        return
    assert hash_module(Module("hlo", "", kernel)).computations


@pytest.mark.parametrize(
    ("deep", "message"), [(190, "a module"), (100_000, "nested at most 200 deep")]
)
def test_nested_regions_have_a_limit(deep: int, message: str) -> None:
    """Depth up to the limit is read completely."""
    # A block of one operation, which has nothing but a region of one block without values.
    code = bytes([5, 1, 16, 1, 5, 3, 1]) * deep + bytes([1])
    container = Container(True, operations=[("scf.if", True)], code=code)
    with pytest.raises(BytecodeError, match=message):
        KernelReader(container).read()


@given(st.binary(max_size=200))
def test_random_bytes_after_the_magic_number_are_counted(raw: bytes) -> None:
    """No other error is raised."""
    text = base64.b64encode(b"ML\xefR" + raw).decode()
    assert structure(mosaic(text)).not_understood


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"\x01", 0),
        (b"\xff", 127),
        (b"\x02\x02", 128),
        (b"\x00" + b"\xff" * 8, (1 << 64) - 1),
        (b"\x80" + b"\xff" * 7, (1 << 56) - 1),
    ],
)
def test_varints_are_decoded(raw: bytes, number: int) -> None:
    """The first byte implies the number of further bytes."""
    cursor = Cursor(raw)
    assert cursor.read_varint() == number
    assert cursor.remaining == 0


@pytest.mark.parametrize(("raw", "number"), [(b"\x01", 0), (b"\x03", -1), (b"\x05", 1)])
def test_signed_varints_are_decoded(raw: bytes, number: int) -> None:
    """The lowest bit is the sign."""
    assert Cursor(raw).read_signed() == number
