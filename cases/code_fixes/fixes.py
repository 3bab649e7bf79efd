"""Code before and after each fix of `conformance scan --fix`.

`FIXES` is the table of the fixes; the scanner reads it from here. A fix has

- `old`: a dotted name, or a call with the names of its parameters, in their order,
- `new`: the name or call that replaces it. Its parameters are those of `old`, one by one: renamed,
  by position only (before `/`), by keyword only (after `*`), or dropped (`_`); or
- `code`: an expression in the parameters of `old` that replaces the call,
- `before` and `after`: an example whose last line is an expression, and its `value`.

`working_forms` records on which releases each of both works: a fix applies where the form after it
works, and the form before it warns or raises.
"""

from __future__ import annotations

import ast
import warnings

import jax
import numpy as np

from conformance.kit import Observed, defaults, probe

defaults(platforms=("cpu",), devices=2)

HEADER = """\
import jax
import jax.extend.backend
import jax.extend.core
import jax.extend.core.primitives
import jax.numpy as jnp
import numpy as np

"""
"""Imports that every example begins with."""

FIXES = {
    "tree_map": {
        "old": "jax.tree_map",
        "new": "jax.tree.map",
        "before": 'jax.tree_map(lambda x: 2 * x, {"a": 1})',
        "after": 'jax.tree.map(lambda x: 2 * x, {"a": 1})',
        "value": {"a": 2},
    },
    "tree_leaves": {
        "old": "jax.tree_leaves",
        "new": "jax.tree.leaves",
        "before": 'jax.tree_leaves({"b": 2, "a": 1})',
        "after": 'jax.tree.leaves({"b": 2, "a": 1})',
        "value": [1, 2],
    },
    "tree_flatten": {
        "old": "jax.tree_flatten",
        "new": "jax.tree.flatten",
        "before": "jax.tree_flatten([3, None])[0]",
        "after": "jax.tree.flatten([3, None])[0]",
        "value": [3],
    },
    "tree_structure": {
        "old": "jax.tree_structure",
        "new": "jax.tree.structure",
        "before": "jax.tree_structure((1, 2)).num_leaves",
        "after": "jax.tree.structure((1, 2)).num_leaves",
        "value": 2,
    },
    "tree_unflatten": {
        "old": "jax.tree_unflatten",
        "new": "jax.tree.unflatten",
        "before": "jax.tree_unflatten(jax.tree.structure((1, 2)), [3, 4])",
        "after": "jax.tree.unflatten(jax.tree.structure((1, 2)), [3, 4])",
        "value": (3, 4),
    },
    "tree_transpose": {
        "old": "jax.tree_transpose",
        "new": "jax.tree.transpose",
        "before": (
            "jax.tree_transpose(jax.tree.structure([0, 0]), jax.tree.structure((0, 0)), [(1, "
            "2), (3, 4)])"
        ),
        "after": (
            "jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure((0, 0)), [(1, "
            "2), (3, 4)])"
        ),
        "value": ([1, 3], [2, 4]),
    },
    "treedef_is_leaf": {
        "old": "jax.treedef_is_leaf",
        "new": "jax.tree_util.treedef_is_leaf",
        "before": "jax.treedef_is_leaf(jax.tree.structure(1))",
        "after": "jax.tree_util.treedef_is_leaf(jax.tree.structure(1))",
        "value": True,
    },
    "core_Primitive": {
        "old": "jax.core.Primitive",
        "new": "jax.extend.core.Primitive",
        "before": 'jax.core.Primitive("double").name',
        "after": 'jax.extend.core.Primitive("double").name',
        "value": "double",
    },
    "core_ClosedJaxpr": {
        "old": "jax.core.ClosedJaxpr",
        "new": "jax.extend.core.ClosedJaxpr",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\nisinstance(jaxpr, jax.core.ClosedJaxpr)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr, jax.extend.core.ClosedJaxpr)"
        ),
        "value": True,
    },
    "core_Jaxpr": {
        "old": "jax.core.Jaxpr",
        "new": "jax.extend.core.Jaxpr",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\nisinstance(jaxpr.jaxpr, jax.core.Jaxpr)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.jaxpr, jax.extend.core.Jaxpr)"
        ),
        "value": True,
    },
    "core_JaxprEqn": {
        "old": "jax.core.JaxprEqn",
        "new": "jax.extend.core.JaxprEqn",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.eqns[0], jax.core.JaxprEqn)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.eqns[0], jax.extend.core.JaxprEqn)"
        ),
        "value": True,
    },
    "core_Literal": {
        "old": "jax.core.Literal",
        "new": "jax.extend.core.Literal",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.eqns[0].invars[0], jax.core.Literal)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.eqns[0].invars[0], jax.extend.core.Literal)"
        ),
        "value": True,
    },
    "core_Var": {
        "old": "jax.core.Var",
        "new": "jax.extend.core.Var",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.jaxpr.invars[0], jax.core.Var)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "isinstance(jaxpr.jaxpr.invars[0], jax.extend.core.Var)"
        ),
        "value": True,
    },
    "core_Token": {
        "old": "jax.core.Token",
        "new": "jax.extend.core.Token",
        "before": "jax.core.Token.__name__",
        "after": "jax.extend.core.Token.__name__",
        "value": "Token",
    },
    "core_jaxpr_as_fun": {
        "old": "jax.core.jaxpr_as_fun",
        "new": "jax.extend.core.jaxpr_as_fun",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\njax.core.jaxpr_as_fun(jaxpr)(3.0)"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\njax.extend.core.jaxpr_as_fun(jaxpr)(3.0)"
        ),
        "value": [6.0],
    },
    "core_DropVar": {
        "old": "jax.core.DropVar",
        "new": "jax.extend.core.DropVar",
        "before": "issubclass(jax.core.DropVar, object)",
        "after": "issubclass(jax.extend.core.DropVar, object)",
        "value": True,
    },
    "core_Effect": {
        "old": "jax.core.Effect",
        "new": "jax.extend.core.Effect",
        "before": "isinstance(jax.core.Effect, type)",
        "after": "isinstance(jax.extend.core.Effect, type)",
        "value": True,
    },
    "core_JaxprTypeError": {
        "old": "jax.core.JaxprTypeError",
        "new": "jax.extend.core.JaxprTypeError",
        "before": "issubclass(jax.core.JaxprTypeError, TypeError)",
        "after": "issubclass(jax.extend.core.JaxprTypeError, TypeError)",
        "value": True,
    },
    "core_InconclusiveDimensionOperation": {
        "old": "jax.core.InconclusiveDimensionOperation",
        "new": "jax.extend.core.InconclusiveDimensionOperation",
        "before": "issubclass(jax.core.InconclusiveDimensionOperation, Exception)",
        "after": "issubclass(jax.extend.core.InconclusiveDimensionOperation, Exception)",
        "value": True,
    },
    "core_check_jaxpr": {
        "old": "jax.core.check_jaxpr",
        "new": "jax.extend.core.check_jaxpr",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "jax.core.check_jaxpr(jaxpr.jaxpr) is None"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "jax.extend.core.check_jaxpr(jaxpr.jaxpr) is None"
        ),
        "value": True,
    },
    "core_concrete_or_error": {
        "old": "jax.core.concrete_or_error",
        "new": "jax.extend.core.concrete_or_error",
        "before": 'jax.core.concrete_or_error(int, 3, "a size")',
        "after": 'jax.extend.core.concrete_or_error(int, 3, "a size")',
        "value": 3,
    },
    "core_gensym": {
        "old": "jax.core.gensym",
        "new": "jax.extend.core.gensym",
        "before": "callable(jax.core.gensym())",
        "after": "callable(jax.extend.core.gensym())",
        "value": True,
    },
    "core_jaxprs_in_params": {
        "old": "jax.core.jaxprs_in_params",
        "new": "jax.extend.core.jaxprs_in_params",
        "before": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "len([*jax.core.jaxprs_in_params(jaxpr.eqns[0].params)])"
        ),
        "after": (
            "jaxpr = jax.make_jaxpr(lambda x: 2 * x)(1.0)\n"
            "len([*jax.extend.core.jaxprs_in_params(jaxpr.eqns[0].params)])"
        ),
        "value": 0,
    },
    "core_new_jaxpr_eqn": {
        "old": "jax.core.new_jaxpr_eqn",
        "new": "jax.extend.core.new_jaxpr_eqn",
        "before": "callable(jax.core.new_jaxpr_eqn)",
        "after": "callable(jax.extend.core.new_jaxpr_eqn)",
        "value": True,
    },
    "core_no_effects": {
        "old": "jax.core.no_effects",
        "new": "jax.extend.core.no_effects",
        "before": "len(jax.core.no_effects)",
        "after": "len(jax.extend.core.no_effects)",
        "value": 0,
    },
    "core_primal_dtype_to_tangent_dtype": {
        "old": "jax.core.primal_dtype_to_tangent_dtype",
        "new": "jax.extend.core.primal_dtype_to_tangent_dtype",
        "before": 'str(jax.core.primal_dtype_to_tangent_dtype(np.dtype("float32")))',
        "after": 'str(jax.extend.core.primal_dtype_to_tangent_dtype(np.dtype("float32")))',
        "value": "float32",
    },
    "core_valid_jaxtype": {
        "old": "jax.core.valid_jaxtype",
        "new": "jax.extend.core.valid_jaxtype",
        "before": "jax.core.valid_jaxtype(1.0)",
        "after": "jax.extend.core.valid_jaxtype(1.0)",
        "value": True,
    },
    "core_call_p": {
        "old": "jax.core.call_p",
        "new": "jax.extend.core.primitives.call_p",
        "before": "isinstance(jax.core.call_p, jax.extend.core.Primitive)",
        "after": "isinstance(jax.extend.core.primitives.call_p, jax.extend.core.Primitive)",
        "value": True,
    },
    "core_closed_call_p": {
        "old": "jax.core.closed_call_p",
        "new": "jax.extend.core.primitives.closed_call_p",
        "before": "isinstance(jax.core.closed_call_p, jax.extend.core.Primitive)",
        "after": "isinstance(jax.extend.core.primitives.closed_call_p, jax.extend.core.Primitive)",
        "value": True,
    },
    "core_ConcretizationTypeError": {
        "old": "jax.core.ConcretizationTypeError",
        "new": "jax.errors.ConcretizationTypeError",
        "before": "issubclass(jax.core.ConcretizationTypeError, TypeError)",
        "after": "issubclass(jax.errors.ConcretizationTypeError, TypeError)",
        "value": True,
    },
    "core_get_aval": {
        "old": "jax.core.get_aval",
        "new": "jax.typeof",
        "before": "jax.core.get_aval(1.0).ndim",
        "after": "jax.typeof(1.0).ndim",
        "value": 0,
    },
    "XlaRuntimeError_of_xla_client": {
        "old": "jax.lib.xla_client.XlaRuntimeError",
        "new": "jax.errors.JaxRuntimeError",
        "before": "issubclass(jax.lib.xla_client.XlaRuntimeError, RuntimeError)",
        "after": "issubclass(jax.errors.JaxRuntimeError, RuntimeError)",
        "value": True,
    },
    "XlaRuntimeError_of_xla_extension": {
        "old": "jax.lib.xla_extension.XlaRuntimeError",
        "new": "jax.errors.JaxRuntimeError",
        "before": "issubclass(jax.lib.xla_extension.XlaRuntimeError, RuntimeError)",
        "after": "issubclass(jax.errors.JaxRuntimeError, RuntimeError)",
        "value": True,
    },
    "ArrayImpl_of_xla_client": {
        "old": "jax.lib.xla_client.ArrayImpl",
        "new": "jax.Array",
        "before": "isinstance(jnp.ones(2), jax.lib.xla_client.ArrayImpl)",
        "after": "isinstance(jnp.ones(2), jax.Array)",
        "value": True,
    },
    "Device_of_xla_client": {
        "old": "jax.lib.xla_client.Device",
        "new": "jax.Device",
        "before": "isinstance(jax.devices()[0], jax.lib.xla_client.Device)",
        "after": "isinstance(jax.devices()[0], jax.Device)",
        "value": True,
    },
    "ArrayImpl_of_xla_extension": {
        "old": "jax.lib.xla_extension.ArrayImpl",
        "new": "jax.Array",
        "before": "isinstance(jnp.ones(2), jax.lib.xla_extension.ArrayImpl)",
        "after": "isinstance(jnp.ones(2), jax.Array)",
        "value": True,
    },
    "Device_of_xla_extension": {
        "old": "jax.lib.xla_extension.Device",
        "new": "jax.Device",
        "before": "isinstance(jax.devices()[0], jax.lib.xla_extension.Device)",
        "after": "isinstance(jax.devices()[0], jax.Device)",
        "value": True,
    },
    "FftType_of_xla_client": {
        "old": "jax.lib.xla_client.FftType",
        "new": "jax.lax.FftType",
        "before": "int(jax.lib.xla_client.FftType.IRFFT)",
        "after": "int(jax.lax.FftType.IRFFT)",
        "value": 3,
    },
    "get_backend": {
        "old": "jax.lib.xla_bridge.get_backend",
        "new": "jax.extend.backend.get_backend",
        "before": "jax.lib.xla_bridge.get_backend().platform",
        "after": "jax.extend.backend.get_backend().platform",
        "value": "cpu",
    },
    "default_backend": {
        "old": "jax.lib.xla_bridge.default_backend",
        "new": "jax.default_backend",
        "before": "jax.lib.xla_bridge.default_backend()",
        "after": "jax.default_backend()",
        "value": "cpu",
    },
    "get_compile_options": {
        "old": "jax.lib.xla_bridge.get_compile_options",
        "new": "jax.extend.backend.get_compile_options",
        "before": "jax.lib.xla_bridge.get_compile_options(1, 1).num_replicas",
        "after": "jax.extend.backend.get_compile_options(1, 1).num_replicas",
        "value": 1,
    },
    "clear_backends": {
        "old": "jax.clear_backends",
        "new": "jax.extend.backend.clear_backends",
        "before": "callable(jax.clear_backends)",
        "after": "callable(jax.extend.backend.clear_backends)",
        "value": True,
    },
    "canonicalize_dtype": {
        "old": "jax.interpreters.xla.canonicalize_dtype",
        "new": "jax.dtypes.canonicalize_dtype",
        "before": (
            'import jax.interpreters.xla\n\nstr(jax.interpreters.xla.canonicalize_dtype("int32"))'
        ),
        "after": 'str(jax.dtypes.canonicalize_dtype("int32"))',
        "value": "int32",
    },
    "round_": {
        "old": "jax.numpy.round_",
        "new": "jax.numpy.round",
        "before": "jnp.round_(jnp.array([1.4, 2.6]))",
        "after": "jnp.round(jnp.array([1.4, 2.6]))",
        "value": [1.0, 3.0],
    },
    "fix": {
        "old": "jax.numpy.fix",
        "new": "jax.numpy.trunc",
        "before": "jnp.fix(jnp.array([-1.5, 1.5]))",
        "after": "jnp.trunc(jnp.array([-1.5, 1.5]))",
        "value": [-1.0, 1.0],
    },
    "trapz": {
        "old": "jax.numpy.trapz",
        "new": "jax.numpy.trapezoid",
        "before": "jnp.trapz(jnp.array([1.0, 3.0]))",
        "after": "jnp.trapezoid(jnp.array([1.0, 3.0]))",
        "value": 2.0,
    },
    "in1d": {
        "old": "jax.numpy.in1d(ar1, ar2, assume_unique, invert)",
        "new": "jax.numpy.isin(element, test_elements, assume_unique, invert)",
        "before": "jnp.in1d(jnp.array([1, 2]), jnp.array([2]))",
        "after": "jnp.isin(jnp.array([1, 2]), jnp.array([2]))",
        "value": [False, True],
    },
    "row_stack": {
        "old": "jax.numpy.row_stack",
        "new": "jax.numpy.vstack",
        "before": "jnp.row_stack([jnp.array([1, 2]), jnp.array([3, 4])])",
        "after": "jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])",
        "value": [[1, 2], [3, 4]],
    },
    "product": {
        "old": "jax.numpy.product",
        "new": "jax.numpy.prod",
        "before": "jnp.product(jnp.array([2, 3]))",
        "after": "jnp.prod(jnp.array([2, 3]))",
        "value": 6,
    },
    "cumproduct": {
        "old": "jax.numpy.cumproduct",
        "new": "jax.numpy.cumprod",
        "before": "jnp.cumproduct(jnp.array([2, 3]))",
        "after": "jnp.cumprod(jnp.array([2, 3]))",
        "value": [2, 6],
    },
    "sometrue": {
        "old": "jax.numpy.sometrue",
        "new": "jax.numpy.any",
        "before": "jnp.sometrue(jnp.array([2, 3]))",
        "after": "jnp.any(jnp.array([2, 3]))",
        "value": True,
    },
    "alltrue": {
        "old": "jax.numpy.alltrue",
        "new": "jax.numpy.all",
        "before": "jnp.alltrue(jnp.array([2, 3]))",
        "after": "jnp.all(jnp.array([2, 3]))",
        "value": True,
    },
    "KeyArray": {
        "old": "jax.random.KeyArray",
        "new": "jax.Array",
        "before": "isinstance(jax.random.key(0), jax.random.KeyArray)",
        "after": "isinstance(jax.random.key(0), jax.Array)",
        "value": True,
    },
    "config": {
        "old": "jax.config.config",
        "new": "jax.config",
        "before": ("from jax.config import config\n\nconfig.jax_enable_x64"),
        "after": ("from jax import config\n\nconfig.jax_enable_x64"),
        "value": False,
    },
    "zeros_like_array": {
        "old": "jax.lax.zeros_like_array",
        "new": "jax.numpy.zeros_like",
        "before": "jax.device_get(jax.lax.zeros_like_array(jnp.ones(2)))",
        "after": "jax.device_get(jnp.zeros_like(jnp.ones(2)))",
        "value": [0.0, 0.0],
    },
    "pvary": {
        "old": "jax.lax.pvary(x, axis_name)",
        "code": 'jax.lax.pcast(x, axis_name, to="varying")',
        "before": (
            "from jax.sharding import Mesh, PartitionSpec as P\n\n"
            'mesh = Mesh(np.array(jax.devices()[:2]), ("x",))\n'
            "specs = {'mesh': mesh, 'in_specs': P(), 'out_specs': P('x')}\n"
            'jax.shard_map(lambda x: jax.lax.pvary(x, "x"), **specs)(jnp.arange(2))'
        ),
        "after": (
            "from jax.sharding import Mesh, PartitionSpec as P\n\n"
            'mesh = Mesh(np.array(jax.devices()[:2]), ("x",))\n'
            "specs = {'mesh': mesh, 'in_specs': P(), 'out_specs': P('x')}\n"
            'jax.shard_map(lambda x: jax.lax.pcast(x, "x", to="varying"), **specs)(jnp.arange(2))'
        ),
        "value": [0, 1, 0, 1],
    },
    "shuffle": {
        "old": "jax.random.shuffle(key, x, axis)",
        "code": "jax.random.permutation(key, x, axis=axis, independent=True)",
        "before": (
            "key, x = jax.random.PRNGKey(0), jnp.arange(6)\n"
            "with jax.threefry_partitionable(False):\n"
            "    shuffled = jax.random.shuffle(key, x)\n"
            "shuffled"
        ),
        "after": (
            "key, x = jax.random.PRNGKey(0), jnp.arange(6)\n"
            "with jax.threefry_partitionable(False):\n"
            "    shuffled = jax.random.permutation(key, x, independent=True)\n"
            "shuffled"
        ),
        "value": [1, 0, 2, 5, 4, 3],
    },
    "sph_harm": {
        "old": "jax.scipy.special.sph_harm(m, n, theta, phi, n_max)",
        "code": "jax.scipy.special.sph_harm_y(n, m, phi, theta, n_max=n_max)",
        "before": (
            "round(float(jax.scipy.special.sph_harm(np.array([1]), np.array([2]), np.array([0.3]), "
            "np.array([0.5]), n_max=2)[0].real), 4)"
        ),
        "after": (
            "round(float(jax.scipy.special.sph_harm_y(np.array([2]), np.array([1]), "
            "np.array([0.5]), np.array([0.3]), n_max=2)[0].real), 4)"
        ),
        "value": -0.3105,
    },
    "checkpoint": {
        "old": "jax.ad_checkpoint.checkpoint",
        "new": "jax.checkpoint",
        "before": "jax.grad(jax.ad_checkpoint.checkpoint(lambda x: x**2))(3.0)",
        "after": "jax.grad(jax.checkpoint(lambda x: x**2))(3.0)",
        "value": 6.0,
    },
    "remat": {
        "old": "jax.ad_checkpoint.remat",
        "new": "jax.remat",
        "before": "jax.grad(jax.ad_checkpoint.remat(lambda x: x**2))(3.0)",
        "after": "jax.grad(jax.remat(lambda x: x**2))(3.0)",
        "value": 6.0,
    },
    "enable_x64": {
        "old": "jax.experimental.enable_x64(new_val=True)",
        "code": "jax.enable_x64(new_val)",
        "before": ("with jax.experimental.enable_x64():\n    name = str(jnp.ones(1).dtype)\nname"),
        "after": ("with jax.enable_x64(True):\n    name = str(jnp.ones(1).dtype)\nname"),
        "value": "float64",
    },
    "disable_x64": {
        "old": "jax.experimental.disable_x64()",
        "code": "jax.enable_x64(False)",
        "before": ("with jax.experimental.disable_x64():\n    name = str(jnp.ones(1).dtype)\nname"),
        "after": ("with jax.enable_x64(False):\n    name = str(jnp.ones(1).dtype)\nname"),
        "value": "float32",
    },
    "enable_x64_of_x64_context": {
        "old": "jax.experimental.x64_context.enable_x64(new_val=True)",
        "code": "jax.enable_x64(new_val)",
        "before": (
            "import jax.experimental.x64_context\n"
            "\n"
            "with jax.experimental.x64_context.enable_x64():\n"
            "    name = str(jnp.ones(1).dtype)\n"
            "name"
        ),
        "after": ("with jax.enable_x64(True):\n    name = str(jnp.ones(1).dtype)\nname"),
        "value": "float64",
    },
    "disable_x64_of_x64_context": {
        "old": "jax.experimental.x64_context.disable_x64()",
        "code": "jax.enable_x64(False)",
        "before": (
            "import jax.experimental.x64_context\n"
            "\n"
            "with jax.experimental.x64_context.disable_x64():\n"
            "    name = str(jnp.ones(1).dtype)\n"
            "name"
        ),
        "after": ("with jax.enable_x64(False):\n    name = str(jnp.ones(1).dtype)\nname"),
        "value": "float32",
    },
    "mutable_array": {
        "old": "jax.experimental.mutable_array",
        "new": "jax.new_ref",
        "before": ("from jax.experimental import mutable_array\n\nmutable_array(np.arange(3))[1]"),
        "after": ("from jax import new_ref as mutable_array\n\nmutable_array(np.arange(3))[1]"),
        "value": 1,
    },
    "MutableArray": {
        "old": "jax.experimental.MutableArray",
        "new": "jax.Ref",
        "before": ("from jax.experimental import MutableArray\n\nisinstance(MutableArray, type)"),
        "after": ("from jax import Ref as MutableArray\n\nisinstance(MutableArray, type)"),
        "value": True,
    },
    "array_ref": {
        "old": "jax.array_ref",
        "new": "jax.new_ref",
        "before": "jax.array_ref(np.arange(3))[1]",
        "after": "jax.new_ref(np.arange(3))[1]",
        "value": 1,
    },
    "ArrayRef": {
        "old": "jax.ArrayRef",
        "new": "jax.Ref",
        "before": "isinstance(jax.ArrayRef, type)",
        "after": "isinstance(jax.Ref, type)",
        "value": True,
    },
    "experimental_export": {
        "old": "jax.experimental.export",
        "new": "jax.export",
        "before": (
            "from jax.experimental import export\n"
            "\n"
            "export.export(jax.jit(lambda x: 2 * x))(1.0).call(3.0)"
        ),
        "after": (
            "from jax import export\n\nexport.export(jax.jit(lambda x: 2 * x))(1.0).call(3.0)"
        ),
        "value": 6.0,
    },
    "array_api": {
        "old": "jax.experimental.array_api",
        "new": "jax.numpy",
        "before": ("import jax.experimental.array_api as xp\n\nxp.sum(xp.asarray([1, 2]))"),
        "after": ("import jax.numpy as xp\n\nxp.sum(xp.asarray([1, 2]))"),
        "value": 3,
    },
    "extend_ffi": {
        "old": "jax.extend.ffi",
        "new": "jax.ffi",
        "before": ("import jax.extend.ffi\n\nisinstance(jax.extend.ffi.include_dir(), str)"),
        "after": ("import jax.ffi\n\nisinstance(jax.ffi.include_dir(), str)"),
        "value": True,
    },
    "initialize_cache": {
        "old": "jax.experimental.compilation_cache.compilation_cache.initialize_cache",
        "new": "jax.experimental.compilation_cache.compilation_cache.set_cache_dir",
        "before": (
            "from jax.experimental.compilation_cache import compilation_cache as cc\n"
            "\n"
            "callable(cc.initialize_cache)"
        ),
        "after": (
            "from jax.experimental.compilation_cache import compilation_cache as cc\n"
            "\n"
            "callable(cc.set_cache_dir)"
        ),
        "value": True,
    },
    "reshard": {
        "old": "jax.experimental.shard.reshard",
        "new": "jax.sharding.reshard",
        "before": ("from jax.experimental.shard import reshard\n\ncallable(reshard)"),
        "after": ("from jax.sharding import reshard\n\ncallable(reshard)"),
        "value": True,
    },
    "auto_axes": {
        "old": "jax.experimental.shard.auto_axes",
        "new": "jax.sharding.auto_axes",
        "before": ("from jax.experimental.shard import auto_axes\n\ncallable(auto_axes)"),
        "after": ("from jax.sharding import auto_axes\n\ncallable(auto_axes)"),
        "value": True,
    },
    "explicit_axes": {
        "old": "jax.experimental.shard.explicit_axes",
        "new": "jax.sharding.explicit_axes",
        "before": ("from jax.experimental.shard import explicit_axes\n\ncallable(explicit_axes)"),
        "after": ("from jax.sharding import explicit_axes\n\ncallable(explicit_axes)"),
        "value": True,
    },
    "XLACompatibleSharding": {
        "old": "jax.sharding.XLACompatibleSharding",
        "new": "jax.sharding.Sharding",
        "before": "isinstance(jax.numpy.ones(2).sharding, jax.sharding.XLACompatibleSharding)",
        "after": "isinstance(jax.numpy.ones(2).sharding, jax.sharding.Sharding)",
        "value": True,
    },
    "use_mesh": {
        "old": "jax.sharding.use_mesh",
        "new": "jax.set_mesh",
        "before": (
            'mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))\n'
            "with jax.sharding.use_mesh(mesh):\n"
            "    names = jax.sharding.get_abstract_mesh().axis_names\n"
            "names"
        ),
        "after": (
            'mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))\n'
            "with jax.set_mesh(mesh):\n"
            "    names = jax.sharding.get_abstract_mesh().axis_names\n"
            "names"
        ),
        "value": ("x",),
    },
    "pjit": {
        "old": (
            "jax.experimental.pjit.pjit(fun, in_shardings, out_shardings, static_argnums, "
            "static_argnames, donate_argnums, donate_argnames, keep_unused, device, backend, "
            "inline)"
        ),
        "new": (
            "jax.jit(fun, /, *, in_shardings, out_shardings, static_argnums, "
            "static_argnames, donate_argnums, donate_argnames, keep_unused, device, backend, "
            "inline)"
        ),
        "before": (
            "from jax.experimental.pjit import pjit\n"
            "\n"
            "pjit(lambda x, n: x * n, static_argnums=1)(2.0, 3)"
        ),
        "after": (
            "from jax import jit as pjit\n\npjit(lambda x, n: x * n, static_argnums=1)(2.0, 3)"
        ),
        "value": 6.0,
    },
    "shard_map": {
        "old": "jax.experimental.shard_map.shard_map(f, mesh, in_specs, out_specs, check_rep)",
        "new": "jax.shard_map(f, /, *, mesh, in_specs, out_specs, check_vma)",
        "before": (
            "from jax.experimental.shard_map import shard_map\n"
            "from jax.sharding import Mesh, PartitionSpec as P\n"
            "\n"
            'mesh = Mesh(np.array(jax.devices()[:2]), "x")\n'
            'shard_map(lambda x: jax.lax.psum(x, "x"), mesh, P("x"), P(), '
            "check_rep=False)(np.arange(4.0))"
        ),
        "after": (
            "from jax import shard_map\n"
            "from jax.sharding import Mesh, PartitionSpec as P\n"
            "\n"
            'mesh = Mesh(np.array(jax.devices()[:2]), "x")\n'
            'shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), '
            "out_specs=P(), check_vma=False)(np.arange(4.0))"
        ),
        "value": [2.0, 4.0],
    },
    "device_put_sharded": {
        "old": "jax.device_put_sharded(shards, devices)",
        "code": (
            "jax.device_put(jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *shards), "
            'jax.sharding.NamedSharding(jax.sharding.Mesh(devices, ("devices",)), '
            'jax.sharding.PartitionSpec("devices")))'
        ),
        "before": (
            "devices = jax.devices()\n"
            'jax.device_put_sharded([{"a": jnp.arange(2) + k} for k in range(len(devices))], '
            'devices)["a"][:2]'
        ),
        "after": (
            "devices = jax.devices()\n"
            "jax.device_put(jax.tree.map(lambda *leaves: jnp.stack(leaves), "
            '*[{"a": jnp.arange(2) + k} for k in range(len(devices))]), '
            'jax.sharding.NamedSharding(jax.sharding.Mesh(devices, ("devices",)), '
            'jax.sharding.PartitionSpec("devices")))["a"][:2]'
        ),
        "value": [[0, 1], [1, 2]],
    },
    "device_put_replicated": {
        "old": "jax.device_put_replicated(x, devices)",
        "code": (
            "j"
            "ax.device_put(jax.tree.map(lambda leaf: jax.numpy.stack([leaf] * len(devices)), "
            'x), jax.sharding.NamedSharding(jax.sharding.Mesh(devices, ("devices",)), '
            'jax.sharding.PartitionSpec("devices")))'
        ),
        "before": (
            "devices = jax.devices()\n"
            'jax.device_put_replicated({"a": jnp.arange(2)}, devices)["a"][:2]'
        ),
        "after": (
            "devices = jax.devices()\n"
            "jax.device_put(jax.tree.map(lambda leaf: jnp.stack([leaf] * len(devices)), "
            '{"a": jnp.arange(2)}), jax.sharding.NamedSharding(jax.sharding.Mesh(devices, '
            '("devices",)), jax.sharding.PartitionSpec("devices")))["a"][:2]'
        ),
        "value": [[0, 1], [0, 1]],
    },
    "safe_zip": {
        "old": "jax.util.safe_zip(first, second)",
        "code": "list(zip(first, second, strict=True))",
        "before": ("from jax.util import safe_zip\n\nsafe_zip([1, 2], [3, 4])"),
        "after": "list(zip([1, 2], [3, 4], strict=True))",
        "value": [(1, 3), (2, 4)],
    },
    "safe_map": {
        "old": "jax.util.safe_map(f, values)",
        "code": "list(map(f, values))",
        "before": ("from jax.util import safe_map\n\nsafe_map(abs, [1, -2])"),
        "after": "list(map(abs, [1, -2]))",
        "value": [1, 2],
    },
    "clip": {
        "old": "jax.numpy.clip(a, a_min, a_max)",
        "new": "jax.numpy.clip(a, /, min, max)",
        "before": "jnp.clip(jnp.arange(4), a_min=1, a_max=2)",
        "after": "jnp.clip(jnp.arange(4), min=1, max=2)",
        "value": [1, 1, 2, 2],
    },
    "reshape": {
        "old": "jax.numpy.reshape(a, newshape)",
        "new": "jax.numpy.reshape(a, shape)",
        "before": "jnp.reshape(jnp.arange(4), newshape=(2, 2))",
        "after": "jnp.reshape(jnp.arange(4), shape=(2, 2))",
        "value": [[0, 1], [2, 3]],
    },
    "quantile": {
        "old": "jax.numpy.quantile(a, q, interpolation)",
        "new": "jax.numpy.quantile(a, q, *, method)",
        "before": 'jnp.quantile(jnp.arange(4.0), 0.5, interpolation="lower")',
        "after": 'jnp.quantile(jnp.arange(4.0), 0.5, method="lower")',
        "value": 1.0,
    },
    "percentile": {
        "old": "jax.numpy.percentile(a, q, interpolation)",
        "new": "jax.numpy.percentile(a, q, *, method)",
        "before": 'jnp.percentile(jnp.arange(4.0), 50.0, interpolation="lower")',
        "after": 'jnp.percentile(jnp.arange(4.0), 50.0, method="lower")',
        "value": 1.0,
    },
    "nanquantile": {
        "old": "jax.numpy.nanquantile(a, q, interpolation)",
        "new": "jax.numpy.nanquantile(a, q, *, method)",
        "before": 'jnp.nanquantile(jnp.arange(4.0), 0.5, interpolation="lower")',
        "after": 'jnp.nanquantile(jnp.arange(4.0), 0.5, method="lower")',
        "value": 1.0,
    },
    "nanpercentile": {
        "old": "jax.numpy.nanpercentile(a, q, interpolation)",
        "new": "jax.numpy.nanpercentile(a, q, *, method)",
        "before": 'jnp.nanpercentile(jnp.arange(4.0), 50.0, interpolation="lower")',
        "after": 'jnp.nanpercentile(jnp.arange(4.0), 50.0, method="lower")',
        "value": 1.0,
    },
    "softmax": {
        "old": "jax.nn.softmax(x, axis, where, initial)",
        "new": "jax.nn.softmax(x, axis, where, _)",
        "before": "jax.nn.softmax(jnp.zeros(2), where=jnp.array([True, True]), initial=0.0)",
        "after": "jax.nn.softmax(jnp.zeros(2), where=jnp.array([True, True]))",
        "value": [0.5, 0.5],
    },
    "log_softmax": {
        "old": "jax.nn.log_softmax(x, axis, where, initial)",
        "new": "jax.nn.log_softmax(x, axis, where, _)",
        "before": "jax.nn.log_softmax(jnp.zeros(1), where=jnp.array([True]), initial=0.0)",
        "after": "jax.nn.log_softmax(jnp.zeros(1), where=jnp.array([True]))",
        "value": [0.0],
    },
    "make_mesh": {
        "old": "jax.make_mesh(axis_shapes, axis_names)",
        "new": "jax.make_mesh(axis_sizes, axis_names)",
        "before": 'jax.make_mesh(axis_shapes=(1,), axis_names=("x",)).axis_names',
        "after": 'jax.make_mesh(axis_sizes=(1,), axis_names=("x",)).axis_names',
        "value": ("x",),
    },
    "jit": {
        "old": (
            "jax.jit(fun, in_shardings, out_shardings, static_argnums, static_argnames, "
            "donate_argnums, donate_argnames, keep_unused, device, backend, inline)"
        ),
        "new": (
            "jax.jit(fun, /, *, in_shardings, out_shardings, static_argnums, "
            "static_argnames, donate_argnums, donate_argnames, keep_unused, device, backend, "
            "inline)"
        ),
        "before": "jax.jit(fun=lambda x: 2 * x)(1.0)",
        "after": "jax.jit(lambda x: 2 * x)(1.0)",
        "value": 2.0,
    },
    "dot": {
        "old": "jax.lax.dot(lhs, rhs, precision, preferred_element_type)",
        "new": "jax.lax.dot(lhs, rhs, *, precision, preferred_element_type)",
        "before": "jax.lax.dot(jnp.ones(2), jnp.ones(2), jax.lax.Precision.HIGHEST)",
        "after": "jax.lax.dot(jnp.ones(2), jnp.ones(2), precision=jax.lax.Precision.HIGHEST)",
        "value": 2.0,
    },
    "array": {
        "old": "jax.numpy.array(object, dtype, copy, order, ndmin)",
        "new": "jax.numpy.array(object, dtype, *, copy, order, ndmin)",
        "before": "jnp.array([1, 2], jnp.float32, True)",
        "after": "jnp.array([1, 2], jnp.float32, copy=True)",
        "value": [1.0, 2.0],
    },
    "exp": {
        "old": "jax.lax.exp(x, accuracy)",
        "new": "jax.lax.exp(x, *, accuracy)",
        "before": "jax.lax.exp(0.0, None)",
        "after": "jax.lax.exp(0.0, accuracy=None)",
        "value": 1.0,
    },
    "lowering_platforms": {
        "old": "jax.export.export(fun_jit, lowering_platforms)",
        "new": "jax.export.export(fun_jit, *, platforms)",
        "before": (
            "from jax import export\n"
            "\n"
            "export.export(jax.jit(lambda x: 2 * x), "
            'lowering_platforms=["cpu"])(1.0).platforms'
        ),
        "after": (
            "from jax import export\n"
            "\n"
            'export.export(jax.jit(lambda x: 2 * x), platforms=["cpu"])(1.0).platforms'
        ),
        "value": ("cpu",),
    },
    "cond": {
        "old": "jax.lax.cond(pred, true_fun, false_fun, *, linear)",
        "new": "jax.lax.cond(pred, true_fun, false_fun, *, _)",
        "before": "jax.lax.cond(True, lambda x: x + 1, lambda x: x, 1, linear=None)",
        "after": "jax.lax.cond(True, lambda x: x + 1, lambda x: x, 1)",
        "value": 2,
    },
    "TPUCompilerParams": {
        "old": "jax.experimental.pallas.tpu.TPUCompilerParams",
        "new": "jax.experimental.pallas.tpu.CompilerParams",
        "before": (
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            'pltpu.TPUCompilerParams(dimension_semantics=("parallel",)).dimension_semantics'
        ),
        "after": (
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            'pltpu.CompilerParams(dimension_semantics=("parallel",)).dimension_semantics'
        ),
        "value": ("parallel",),
    },
    "TPUMemorySpace": {
        "old": "jax.experimental.pallas.tpu.TPUMemorySpace",
        "new": "jax.experimental.pallas.tpu.MemorySpace",
        "before": (
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "str(pltpu.TPUMemorySpace.SMEM.value)"
        ),
        "after": (
            "from jax.experimental.pallas import tpu as pltpu\n\nstr(pltpu.MemorySpace.SMEM.value)"
        ),
        "value": "smem",
    },
    "TritonCompilerParams": {
        "old": "jax.experimental.pallas.triton.TritonCompilerParams",
        "new": "jax.experimental.pallas.triton.CompilerParams",
        "before": (
            "from jax.experimental.pallas import triton\n"
            "\n"
            "triton.TritonCompilerParams(num_warps=4).num_warps"
        ),
        "after": (
            "from jax.experimental.pallas import triton\n"
            "\n"
            "triton.CompilerParams(num_warps=4).num_warps"
        ),
        "value": 4,
    },
    "pallas_semaphore": {
        "old": "jax.experimental.pallas.tpu.semaphore",
        "new": "jax.experimental.pallas.semaphore",
        "before": (
            "from jax.experimental import pallas as pl\n"
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "callable(pltpu.semaphore)"
        ),
        "after": ("from jax.experimental import pallas as pl\n\ncallable(pl.semaphore)"),
        "value": True,
    },
    "pallas_semaphore_read": {
        "old": "jax.experimental.pallas.tpu.semaphore_read",
        "new": "jax.experimental.pallas.semaphore_read",
        "before": (
            "from jax.experimental import pallas as pl\n"
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "callable(pltpu.semaphore_read)"
        ),
        "after": ("from jax.experimental import pallas as pl\n\ncallable(pl.semaphore_read)"),
        "value": True,
    },
    "pallas_semaphore_signal": {
        "old": "jax.experimental.pallas.tpu.semaphore_signal",
        "new": "jax.experimental.pallas.semaphore_signal",
        "before": (
            "from jax.experimental import pallas as pl\n"
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "callable(pltpu.semaphore_signal)"
        ),
        "after": ("from jax.experimental import pallas as pl\n\ncallable(pl.semaphore_signal)"),
        "value": True,
    },
    "pallas_semaphore_wait": {
        "old": "jax.experimental.pallas.tpu.semaphore_wait",
        "new": "jax.experimental.pallas.semaphore_wait",
        "before": (
            "from jax.experimental import pallas as pl\n"
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "callable(pltpu.semaphore_wait)"
        ),
        "after": ("from jax.experimental import pallas as pl\n\ncallable(pl.semaphore_wait)"),
        "value": True,
    },
    "pallas_delay": {
        "old": "jax.experimental.pallas.tpu.delay",
        "new": "jax.experimental.pallas.delay",
        "before": (
            "from jax.experimental import pallas as pl\n"
            "from jax.experimental.pallas import tpu as pltpu\n"
            "\n"
            "callable(pltpu.delay)"
        ),
        "after": ("from jax.experimental import pallas as pl\n\ncallable(pl.delay)"),
        "value": True,
    },
}


def run(code):
    """Return the value of the last line of a source, as numbers, texts and containers."""
    tree = ast.parse(HEADER + code)
    last = ast.Expression(tree.body.pop().value)
    names = {}
    exec(compile(tree, "<example>", "exec"), names)  # noqa: S102 - the examples are above
    value = eval(compile(last, "<example>", "eval"), names)  # noqa: S307
    return jax.tree_util.tree_map(
        lambda leaf: leaf.tolist() if isinstance(leaf, (jax.Array, np.ndarray)) else leaf, value
    )


def find_form(code):
    """Return whether code `works`, `warns` of a deprecation, or `raises`, and its value."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = run(code)
        except Exception:  # noqa: BLE001 - any error is an outcome
            return "raises", None
    categories = (DeprecationWarning, FutureWarning)
    warned = any(issubclass(warning.category, categories) for warning in caught)
    return "warns" if warned else "works", value


@probe(source="jax-ml/jax#27446", params=[*FIXES])
def rewritten(env, name):
    """Code computes the same value before and after a fix, on each release with either form."""
    forms = [find_form(FIXES[name][how]) for how in ("before", "after")]
    values = [value for form, value in forms if form != "raises"]
    if not values:
        env.unsupported("neither form exists")
    if len(values) > 1 and values[0] != values[1]:
        raise AssertionError(f"{values[0]} before, {values[1]} after")
    return Observed(values[-1], FIXES[name]["value"])


@probe(source="jax-ml/jax#27446", records="jax decides which names and parameters it has")
def working_forms(env):
    """Of each fix: whether the code before and after it works, warns or raises."""
    return {
        name: {how: find_form(fix[how])[0] for how in ("before", "after")}
        for name, fix in FIXES.items()
    }
