"""Contractions, convolutions, decompositions and Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import PARTS, ArrayType
from conformance.fuzz.operation import (
    FLOAT,
    INEXACT,
    NUMBER,
    SINGLE,
    Operation,
    make_calls,
    make_operations,
)

if TYPE_CHECKING:
    from conformance.fuzz.program import Variable
    from conformance.fuzz.scope import Scope

LAPACK: Final = ("float32", "float64", "complex64", "complex128")
"""Dtypes of LAPACK, which decomposes matrices on CPU."""
COMPLEX: Final = {"float32": "complex64", "float64": "complex128"}
"""Complex dtype of a real one."""
PRECISIONS: Final = ("", ', precision="highest"', ', precision="default"')


def pick_with_shape(scope: Scope, shape: tuple[int, ...], dtype: str) -> Variable:
    """Draw an operand of a type."""
    wanted = ArrayType(shape, dtype)
    return scope.pick(lambda type_: type_ == wanted, lambda: wanted)


def draw_product(scope: Scope, operation: Operation) -> None:
    """Add a product of matrices or vectors."""
    x = scope.pick_kind(NUMBER, smallest=1, largest=2)
    y_shape = (x.type.shape[-1], scope.choose([2, 3, 1]))
    shape: tuple[int, ...] = (*x.type.shape[:-1], y_shape[1])
    if operation.name == "jnp.vdot":
        y_shape, shape = x.type.shape, ()  # type: ignore[assignment]
    elif operation.name == "jnp.inner":
        y_shape = (y_shape[1], y_shape[0])
    elif operation.name in {"jnp.outer", "jnp.kron"}:
        if x.type.rank != 1:
            return
        y_shape = (y_shape[1],)  # type: ignore[assignment]
        size = x.type.size * y_shape[0]
        shape = (x.type.size, y_shape[0]) if operation.name == "jnp.outer" else (size,)
    elif operation.name == "lax.batch_matmul":
        if x.type.rank == 1:
            return
        y = pick_with_shape(scope, y_shape, x.type.dtype)
        scope.add(operation.name, "lax.batch_matmul({0}[None], {1}[None])[0]", [x, y],
                  x.type.with_shape(*shape))  # fmt: skip
        return
    y = pick_with_shape(scope, y_shape, x.type.dtype)
    more = scope.choose(PRECISIONS) if operation.name not in {"jnp.outer", "jnp.kron"} else ""
    twin = f"{operation.name.replace('jnp.', 'np.')}({{0}}, {{1}})"
    if operation.name.startswith("lax") or x.type.kind not in INEXACT:
        twin = ""
    code = f"{operation.name}({{0}}, {{1}}{more})"
    scope.add(operation.name, code, [x, y], x.type.with_shape(*shape), twin=twin)


def draw_einsum(scope: Scope, operation: Operation) -> None:
    """Add a contraction by an equation."""
    equation = scope.choose(["ij,jk->ik", "ij,kj->ki", "ij,ij->i", "ij,ij->", "ij,k->ikj",
                             "ii->i", "ij->ji", "ij->"])  # fmt: skip
    sizes = {letter: scope.choose([2, 3, 1, 4]) for letter in "ijk"}
    left, right = equation.split("->")
    terms = left.split(",")
    dtype = scope.choose_dtype(INEXACT)
    operands = [pick_with_shape(scope, tuple(sizes[c] for c in term), dtype) for term in terms]
    places = ", ".join(f"{{{number}}}" for number in range(len(operands)))
    more = scope.choose(PRECISIONS)
    scope.add(
        operation.name, f'jnp.einsum("{equation}", {places}{more})', operands,
        ArrayType(tuple(sizes[c] for c in right), dtype),
        twin=f'np.einsum("{equation}", {places})',
    )  # fmt: skip


def draw_tensordot(scope: Scope, operation: Operation) -> None:
    """Add a contraction over some axes."""
    x = scope.pick_kind(INEXACT, smallest=2, largest=3)
    y = pick_with_shape(scope, (x.type.shape[-1], 2), x.type.dtype)
    shape = (*x.type.shape[:-1], 2)
    if operation.name == "jnp.tensordot":
        scope.add(operation.name, "jnp.tensordot({0}, {1}, 1)", [x, y], x.type.with_shape(*shape),
                  twin="np.tensordot({0}, {1}, 1)")  # fmt: skip
        return
    last = x.type.rank - 1
    kind = scope.choose(["", ', preferred_element_type="float32"'])
    if x.type.kind == "complex":
        kind = ""
    dtype = "float32" if kind else x.type.dtype
    code = f"{operation.name}({{0}}, {{1}}, ((({last},), (0,)), ((), ())){kind})"
    scope.add(operation.name, code, [x, y], ArrayType(shape, dtype))


def draw_narrow_product(scope: Scope, operation: Operation) -> None:
    """Add a product of small dtypes with a wider result."""
    dtype, wide = scope.choose(
        [("int8", "int32"), ("bfloat16", "float32"), ("float16", "float32"),
         ("float8_e4m3fn", "float32"), ("float8_e5m2", "bfloat16"), ("uint8", "uint32"),
         ("int4", "int32")]
    )  # fmt: skip
    rows, inner, columns = (scope.choose([2, 3, 4]) for _ in range(3))
    x = pick_with_shape(scope, (rows, inner), dtype)
    y = pick_with_shape(scope, (inner, columns), dtype)
    code = f'{operation.name}({{0}}, {{1}}, preferred_element_type="{wide}")'
    scope.add(operation.name, code, [x, y], ArrayType((rows, columns), wide))


def draw_ragged_dot(scope: Scope, operation: Operation) -> None:
    """Add a product of groups of rows, each with a matrix of its own."""
    dtype = scope.choose(["float32", "bfloat16"])
    rows, inner, columns, groups = (scope.choose([2, 3, 4]) for _ in range(4))
    x = pick_with_shape(scope, (rows, inner), dtype)
    y = pick_with_shape(scope, (groups, inner, columns), dtype)
    sizes = f"jnp.array([{rows - 1}, 1{', 0' * (groups - 2)}])"
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}}, {sizes})", [x, y],
              ArrayType((rows, columns), dtype))  # fmt: skip


def draw_convolution(scope: Scope, operation: Operation) -> None:
    """Add a convolution in one or two dimensions with strides, dilations and groups."""
    dtype = scope.choose(["float32", "bfloat16", "float16", "float32"])
    rank = scope.choose([1, 2])
    size, window = scope.choose([4, 5, 8]), scope.choose([1, 2, 3])
    groups = scope.choose([1, 2])
    stride, dilation = scope.choose([1, 2]), scope.choose([1, 2])
    padding = scope.choose(["SAME", "VALID"])
    span = (window - 1) * dilation + 1
    out = -(-size // stride) if padding == "SAME" else max(0, (size - span) // stride + 1)
    x = pick_with_shape(scope, (1, 2, *[size] * rank), dtype)
    w = pick_with_shape(scope, (2, 2 // groups, *[window] * rank), dtype)
    if operation.name == "lax.conv_transpose":
        if groups > 1 or dilation > 1:
            return
        out = size * stride + (max(window - stride, 0) if padding == "VALID" else 0)
        order = ("NCH", "OIH", "NCH") if rank == 1 else ("NCHW", "OIHW", "NCHW")
        code = (
            f'lax.conv_transpose({{0}}, {{1}}, {(stride,) * rank}, "{padding}", '
            f"dimension_numbers={order})"
        )  # fmt: skip
    else:
        code = (
            f'lax.conv_general_dilated({{0}}, {{1}}, {(stride,) * rank}, "{padding}", '
            f"rhs_dilation={(dilation,) * rank}, feature_group_count={groups})"
        )
    scope.add(operation.name, code, [x, w], ArrayType((1, 2, *[out] * rank), dtype))


def draw_window(scope: Scope, operation: Operation) -> None:
    """Add a reduction over windows."""
    x = scope.pick_kind(("float", "int"), smallest=1, largest=1, least=3)
    window, stride = scope.choose([2, 3]), scope.choose([1, 2])
    size = (x.type.size - window) // stride + 1
    zero = {"lax.add": "0", "lax.mul": "1"}.get(operation.call, "")
    if not zero:
        low = "min" if operation.call == "lax.max" else "max"
        info = "finfo" if x.type.kind == "float" else "iinfo"
        zero = f"jnp.{info}({{0}}.dtype).{low}"
    code = (
        f"lax.reduce_window({{0}}, jnp.array({zero}, {{0}}.dtype), {operation.call}, ({window},), "
        f'({stride},), "VALID")'
    )
    scope.add(operation.name, code, [x], x.type.with_shape(size))


def _pick_square(scope: Scope, *, dtypes: tuple[str, ...] = LAPACK, batch: bool = True) -> Variable:
    """Draw a square matrix or a batch of them."""
    usable = [dtype for dtype in dtypes if scope.x64 or dtype not in {"float64", "complex128"}]

    def make() -> ArrayType:
        n = scope.choose([2, 3, 1, 4])
        front = (2,) if batch and scope.rarely(4) else ()
        return ArrayType((*front, n, n), scope.choose(usable))

    def accept(type_: ArrayType) -> bool:
        return (
            type_.dtype in usable and type_.rank > 1 and type_.shape[-1] == type_.shape[-2] > 0
            and (batch or not type_.shape[:-2])
        )  # fmt: skip

    return scope.pick(accept, make)


WELL: Final = "({0} @ {0}.mT.conj() + 2 * jnp.eye({0}.shape[-1], dtype={0}.dtype))"
"""A positive definite matrix made of any one."""


def draw_matrix_function(scope: Scope, operation: Operation) -> None:
    """Add a function of a square matrix; `result` is `same`, `vector`, `scalar` or `part`."""
    dtypes = LAPACK if operation.kinds == NUMBER else operation.kinds
    x = _pick_square(scope, dtypes=dtypes, batch="jax.scipy" not in operation.name)
    *front, n, _ = x.type.shape
    shape = {"vector": (*front, n), "scalar": tuple(front), "part": tuple(front)}.get(
        operation.result, x.type.shape
    )
    dtype = x.type.dtype
    if operation.result in {"part", "vector"}:
        dtype = PARTS.get(dtype, dtype)
    code = operation.call.replace("WELL", WELL)
    scope.add(operation.name, code, [x], ArrayType(shape, dtype))


def draw_spectrum(scope: Scope, operation: Operation) -> None:
    """Add what does not depend on the signs of eigenvectors: a rebuilt matrix."""
    x = _pick_square(scope, batch=False)
    scope.add(operation.name, operation.call.replace("WELL", WELL), [x], x.type)


def draw_solve(scope: Scope, operation: Operation) -> None:
    """Add the solution of a linear system."""
    x = _pick_square(scope, batch=False)
    b = pick_with_shape(scope, (x.type.shape[0], scope.choose([1, 2])), x.type.dtype)
    scope.add(operation.name, operation.call.replace("WELL", WELL), [x, b], b.type)


def draw_norm(scope: Scope, operation: Operation) -> None:
    """Add a norm of a matrix."""
    x = scope.pick_kind(INEXACT, smallest=2, largest=2, least=1)
    if x.type.dtype not in LAPACK:
        return
    order = scope.choose(['"fro"', "1", "jnp.inf", "-1", '"nuc"', "2"])
    dtype = PARTS.get(x.type.dtype, x.type.dtype)
    twin = f"np.linalg.norm({{0}}, {order.replace('jnp', 'np')})"
    scope.add(operation.name, f"{operation.name}({{0}}, {order})", [x], ArrayType((), dtype),
              twin=twin)  # fmt: skip


def draw_fourier(scope: Scope, operation: Operation) -> None:
    """Add a Fourier transform along one axis or several; `call` has its arguments."""
    name = operation.name.removeprefix("jnp.fft.")
    real = name.startswith(("rfft", "ihfft"))
    wanted = "float" if real else "complex"
    x = scope.pick_kind((wanted,), smallest=2 if name.endswith("2") else 1, least=2)
    if x.type.dtype in {"bfloat16", "float16"}:
        return
    norm = scope.choose(["", ', norm="ortho"', ', norm="forward"'])
    *front, last = x.type.shape
    dtype, size = x.type.dtype, last
    if real:
        dtype, size = COMPLEX[x.type.dtype], last // 2 + 1
    elif name.startswith(("irfft", "hfft")):
        dtype, size = PARTS[x.type.dtype], 2 * (last - 1)
    code = f"{operation.name}({{0}}{norm})"
    scope.add(operation.name, code, [x], ArrayType((*front, size), dtype),
              twin=code.replace("jnp.", "np."))  # fmt: skip


def draw_cosine(scope: Scope, operation: Operation) -> None:
    """Add a discrete cosine transform."""
    x = scope.pick_kind(SINGLE, smallest=1, least=1)
    forms = ["", ', norm="ortho"']
    if operation.name.endswith("n"):
        forms.append(f", s=({x.type.shape[-1]},)")
    form = scope.choose(forms)
    scope.add(operation.name, f"{operation.name}({{0}}{form})", [x], x.type)


def draw_shift(scope: Scope, operation: Operation) -> None:
    """Add an exchange of the halves of a spectrum."""
    x = scope.pick_kind(NUMBER, smallest=1)
    code = f"{operation.name}({{0}})"
    scope.add(operation.name, code, [x], x.type, twin=code.replace("jnp.", "np."))


def draw_cross(scope: Scope, operation: Operation) -> None:
    """Add a cross product."""
    dtype = scope.choose_dtype(INEXACT)
    x, y = (pick_with_shape(scope, (3,), dtype) for _ in range(2))
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}})", [x, y], x.type,
              twin="np.cross({0}, {1})")  # fmt: skip


def draw_polynomial(scope: Scope, operation: Operation) -> None:
    """Add a function of the coefficients of polynomials."""
    x = scope.pick_kind(operation.kinds, smallest=1, largest=1, least=2)
    n = x.type.size
    if operation.name == "jnp.polyval":
        y = scope.pick_kind((x.type.kind,))
        if y.type.dtype != x.type.dtype:
            return
        scope.add(
            operation.name, "jnp.polyval({0}, {1})", [x, y], y.type, twin="np.polyval({0}, {1})"
        )
        return
    shape, call = {
        "jnp.polyder": ((n - 1,), "({0})"), "jnp.polyint": ((n + 1,), "({0})"),
        "jnp.vander": ((n, n), "({0})"), "jnp.polyadd": ((n,), "({0}, {0})"),
        "jnp.polymul": ((2 * n - 1,), "({0}, {0})"),
        "jnp.polyfit": ((2,), "(jnp.arange({0}.size, dtype={0}.dtype), {0}, 1)"),
    }[operation.name]  # fmt: skip
    twin = "" if operation.name == "jnp.polyfit" else operation.name.replace("jnp.", "np.") + call
    scope.add(operation.name, operation.name + call, [x], x.type.with_shape(*shape), twin=twin)


LINEAR_ALGEBRA: Final = (
    *make_operations(
        "jnp.matmul jnp.dot jnp.vdot jnp.inner jnp.outer jnp.kron lax.batch_matmul lax.dot",
        draw_product,
    ),
    *make_operations("jnp.einsum", draw_einsum),
    *make_operations("jnp.tensordot lax.dot_general", draw_tensordot),
    *make_operations("lax.dot jnp.matmul", draw_narrow_product),
    *make_operations("lax.ragged_dot", draw_ragged_dot),
    *make_operations("lax.conv_general_dilated lax.conv_transpose", draw_convolution),
    *(
        Operation(name="lax.reduce_window", rule=draw_window, call=call)
        for call in ("lax.add", "lax.max", "lax.min", "lax.mul")
    ),
    *make_calls(
        ["jnp.linalg.inv(WELL)", "jnp.linalg.pinv(WELL)", "jnp.linalg.cholesky(WELL)",
         "jnp.linalg.matrix_power({0}, 3)", "jax.scipy.linalg.expm({0})",
         "jnp.linalg.inv({0})"],
        draw_matrix_function,
    ),
    *make_calls(["jnp.linalg.matrix_power({0}, 3)"], draw_matrix_function, ("int32", "uint8")),
    *make_calls(["jnp.linalg.det({0})"], draw_matrix_function, result="scalar"),
    *make_calls(
        ["jnp.linalg.slogdet({0})[1]", "jnp.linalg.cond({0})"], draw_matrix_function, result="part"
    ),
    *make_calls(
        ["jnp.linalg.eigvalsh({0})", "jnp.linalg.svd({0}, compute_uv=False)",
         "jnp.linalg.svdvals({0})"],
        draw_matrix_function, result="vector",
    ),
    *make_calls(
        [
            "jax.scipy.linalg.sqrtm(WELL)", "jax.scipy.linalg.polar({0})[1]",
        ],
        draw_spectrum,
    ),
    *(
        Operation(name=name, rule=draw_spectrum, call=f"(lambda {rebuild})(*{name}({{0}}))")
        for name, rebuild in {
            "jnp.linalg.eigh": "w, v: (v * w.astype(v.dtype)) @ v.mT.conj()",
            "jnp.linalg.qr": "q, r: q @ r",
            "jnp.linalg.svd": "u, s, v: (u * s.astype(u.dtype)) @ v",
            "jax.scipy.linalg.lu": "p, l, u: p @ l @ u",
        }.items()
    ),
    *make_calls(
        ["jnp.linalg.solve(WELL, {1})", "jax.scipy.linalg.solve(WELL, {1}, assume_a='pos')",
         "jax.scipy.linalg.solve_triangular(WELL, {1}, lower=True)",
         "jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(WELL), True), {1})",
         "jnp.linalg.lstsq(WELL, {1})[0]", "jnp.linalg.lstsq({0}, {1})[0]",
         "lax.linalg.triangular_solve(WELL, {1}, left_side=True)"],
        draw_solve,
    ),
    *make_operations("jnp.linalg.norm", draw_norm),
    *make_operations(
        "jnp.fft.fft jnp.fft.ifft jnp.fft.fft2 jnp.fft.ifft2 jnp.fft.fftn jnp.fft.ifftn "
        "jnp.fft.rfft jnp.fft.irfft jnp.fft.hfft jnp.fft.ihfft jnp.fft.rfft2 jnp.fft.irfft2 "
        "jnp.fft.rfftn jnp.fft.irfftn",
        draw_fourier,
    ),
    *make_operations(
        "jax.scipy.fft.dct jax.scipy.fft.idct jax.scipy.fft.dctn jax.scipy.fft.idctn", draw_cosine
    ),
    *make_operations("jnp.fft.fftshift jnp.fft.ifftshift", draw_shift),
    *make_operations("jnp.cross", draw_cross),
    *make_operations(
        "jnp.polyval jnp.polyder jnp.polyint jnp.vander jnp.polyadd jnp.polymul", draw_polynomial,
        FLOAT,
    ),
    *make_operations("jnp.polyfit", draw_polynomial, SINGLE),
)  # fmt: skip
