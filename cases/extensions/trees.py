"""Pytrees: None, named tuples, dataclasses, key paths and flattening to one vector."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats, outcome

defaults(platforms=("cpu",))

tree_util = jax.tree_util


class Point(NamedTuple):
    """Two coordinates."""

    x: Any
    y: Any


def make_tree():
    """Return a tree of all kinds of nodes."""
    ordered = collections.OrderedDict([("z", 4), ("a", 5)])
    default = collections.defaultdict(list, {"k": [6]})
    return {"b": Point(1, None), "a": [2, (3,)], "o": ordered, "d": default, "e": ()}


@probe(source="jax-ml/jax@7f43316e273e")
def order_and_paths(env):
    """Dictionaries are flattened by sorted key, an OrderedDict in its order; None is no leaf."""
    leaves, structure = tree_util.tree_flatten_with_path(make_tree())
    paths = {tree_util.keystr(path): leaf for path, leaf in leaves}
    expected = {
        "['a'][0]": 2,
        "['a'][1][0]": 3,
        "['b'].x": 1,
        "['d']['k'][0]": 6,
        "['o']['z']": 4,
        "['o']['a']": 5,
    }
    again = tree_util.tree_unflatten(structure, list(paths.values()))
    return Observed((list(paths), paths, again == make_tree()), (list(expected), expected, True))


NO_SIMPLE_PATHS = deviation(
    "jax<0.5.1",
    error="TypeError",
    match="unexpected keyword argument",
    reason="keystr had no options",
    issue="jax-ml/jax@7f43316e273e",
)


@probe(source="jax-ml/jax@7f43316e273e", deviations=[NO_SIMPLE_PATHS])
def simple_paths(env):
    """`keystr(path, simple=True, separator="/")` joins the keys, from 0.5.1."""
    leaves, _ = tree_util.tree_flatten_with_path({"b": Point(1, None), "a": [2, (3,)]})
    observed = [tree_util.keystr(path, simple=True, separator="/") for path, _ in leaves]
    return Observed(observed, ["a/0", "a/1/0", "b/x"])


@probe(source="jax-ml/jax@cf9c08589e88")
def dataclass(env):
    """The data fields of a registered dataclass are leaves, its metadata is in the structure."""
    cls = dataclasses.make_dataclass("Local", [("content", Any), ("label", str)])
    tree_util.register_dataclass(cls, data_fields=["content"], meta_fields=["label"])
    box = cls(content={"w": floats(1, 2)}, label="a")
    traces = []

    @jax.jit
    def f(box):
        traces.append(box.label)
        return cls(jax.tree_util.tree_map(lambda x: 2 * x, box.content), box.label + "!")

    doubled = f(box)
    f(cls({"w": floats(3, 4)}, "a"))
    f(cls({"w": floats(3, 4)}, "b"))
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(box)[0]]
    observed = {"w": doubled.content["w"], "label": doubled.label, "traces": traces, "paths": paths}
    expected = {"w": floats(2, 4), "label": "a!", "traces": ["a", "b"], "paths": [".content['w']"]}
    return Observed(observed, expected)


@probe(source="jax-ml/jax@69a50b7a8640")
def structures_that_differ(env):
    """`tree_map` of trees that differ is a ValueError that names the place or the type."""
    cases = {
        "arity": ([1, 2], [1, 2, 3]),
        "key": ({"a": 1}, {"b": 1}),
        "type": ([1], (1,)),
        "None": ([1], [None]),
        "named": (Point(1, 2), (1, 2)),
    }

    def add(pair):
        return tree_util.tree_map(lambda x, y: (x, y), *pair)

    observed = {name: outcome(lambda pair=pair: add(pair)) for name, pair in cases.items()}
    expected = dict.fromkeys(cases, "ValueError") | {"None": "ran"}
    return Observed(observed, expected)


@probe(source="jax-ml/jax@5279767b48b5", records="texts of errors")
def prefixes_that_do_not_fit(env):
    """The message of `vmap` about `in_axes` that do not fit names the place in the tree."""
    tree = {"a": floats(1, 2), "b": [floats(1, 2)]}
    axes = {"more": {"a": 0, "b": [0, 0]}, "key": {"a": 0, "c": 0}, "list": {"a": [0], "b": 0}}
    f = lambda t: t["a"]  # noqa: E731
    words = ("pytree prefix", "in_axes", "['b']", "['a']")
    return {
        name: outcome(lambda a=a: jax.vmap(f, in_axes=(a,))(tree), *words)
        for name, a in axes.items()
    }


NO_KEY_OF_AN_ATTRIBUTE = deviation(
    "jax<0.11",
    outcome="ok",
    match="AttributeError",
    reason="the message was made from keys of dictionaries",
    issue="jax-ml/jax#25659",
)


@probe(source="jax-ml/jax#25659", deviations=[NO_KEY_OF_AN_ATTRIBUTE])
def prefix_with_fewer_attributes(env):
    """`in_shardings` with fewer children than a node that is registered with names of attributes.

    The ValueError names them; up to 0.10.2, making the message fails with an AttributeError.
    """

    class Node:
        def __init__(self, **children):
            self.children = children

    tree_util.register_pytree_with_keys(
        Node,
        lambda n: ([(tree_util.GetAttrKey(k), v) for k, v in n.children.items()], None),
        lambda _, children: Node(**dict(zip("abc", children, strict=False))),
    )
    place = jax.sharding.SingleDeviceSharding(env.devices[0])
    shardings, node = Node(a=place, b=place), Node(a=floats(1), b=floats(1), c=floats(1))
    observed = outcome(lambda: jax.jit(lambda x: x, in_shardings=(shardings,))(node), ".a .b .c")
    return Observed(observed, "ValueError: .a .b .c")


@probe(source="jax-ml/jax@7f43316e273e", records="aliases that came one by one")
def functions_of_jax_tree(env):
    """Which functions `jax.tree` has."""
    names = "all flatten leaves map reduce structure transpose unflatten flatten_with_path "
    names += "leaves_with_path map_with_path broadcast reduce_associative"
    return {name: hasattr(jax.tree, name) for name in names.split()}


EMPTY_TREE_IS_SCALAR = deviation(
    "jax==0.7.0",
    outcome="ok",
    reason="the vector of an empty tree was a scalar",
    issue="jax-ml/jax#30587",
)


@probe(source="jax-ml/jax#30587", deviations=[EMPTY_TREE_IS_SCALAR])
def vector_of_an_empty_tree(env):
    """`ravel_pytree` of a tree without leaves is an empty float vector."""
    vector, unravel = ravel_pytree({"a": (), "b": None})
    observed = {"dtype": str(vector.dtype), "shape": vector.shape, "again": unravel(vector)}
    expected = {"dtype": "float32", "shape": (0,), "again": {"a": (), "b": None}}
    return Observed(observed, expected)


ANOTHER_CLASS_OF_ERROR = deviation(
    "jax<0.7",
    outcome="ok",
    reason="a vector of another length was refused with a TypeError",
)


@probe(source="jax-ml/jax#6135", deviations=[ANOTHER_CLASS_OF_ERROR])
def vector_of_a_tree(env):
    """`ravel_pytree` promotes leaves to one dtype; unravelling restores shapes and dtypes."""
    tree = {"i": np.array([[1, 2]], np.int32), "f": floats(0.5), "n": None, "h": np.float16(3)}
    vector, unravel = ravel_pytree(tree)
    vector = np.asarray(vector)
    again = jax.jit(unravel)(vector * 2)
    refused = {
        "shape": outcome(lambda: unravel(vector[1:])),
        "dtype": outcome(lambda: unravel(vector.astype(np.int32))),
    }
    exact = jax.tree_util.tree_map(lambda x: (2 * x).astype(x.dtype), tree)
    gradient = jax.jit(jax.grad(lambda v: unravel(v)["f"] ** 2))(vector)
    return Observed(
        (vector, again, refused, gradient),
        (
            floats(0.5, 3, 1, 2),
            exact,
            {"shape": "ValueError", "dtype": "TypeError"},
            floats(1, 0, 0, 0),
        ),
    )


DTYPE_OF_PYTHON_NUMBERS = deviation(
    "jax<0.7.2",
    error="TypeError",
    match="unravel function given array of dtype",
    reason="numbers of Python counted as numbers of 64 bits, which are converted back",
)


@probe(source="jax-ml/jax@b5dbfdd21835", deviations=[DTYPE_OF_PYTHON_NUMBERS])
def vector_of_python_numbers(env):
    """A tree of Python numbers can be unravelled from a vector of another dtype from 0.7.2 on.

    Fractions then silently take the place of integers. Before, it was a TypeError.
    """
    _, unravel = ravel_pytree({"a": 1, "b": 2})
    return Observed(unravel(floats(0.5, 1.5)), {"a": np.float64(0.5), "b": np.float64(1.5)})


DOUBLE_PRECISION_REFUSED = deviation(
    "jax<0.7.2",
    error="TypeError",
    match="unravel function given array of dtype float64",
    reason="the dtype of the vector was compared as it was",
    issue="jax-ml/jax@b5dbfdd21835",
)


@probe(source="jax-ml/jax@b5dbfdd21835", deviations=[DOUBLE_PRECISION_REFUSED])
def vector_of_double_precision(env):
    """Without x64, `unravel` takes float64, as SciPy's optimizers pass it, from 0.7.2 on."""
    vector, unravel = ravel_pytree({"i": np.int32([1, 2]), "f": floats(0.5)})
    again = unravel(np.asarray(vector).astype(np.float64))
    return Observed(again, {"i": np.int32([1, 2]), "f": floats(0.5)})


INTEGERS_ROUNDED = deviation(
    outcome="ok",
    reason="uint32 and float32 promote to float32, which has 24 bits for an integer",
    issue="jax-ml/jax#29593",
)


@probe(source="jax-ml/jax#29593", deviations=[INTEGERS_ROUNDED])
def large_integers_through_a_vector(env):
    """`ravel_pytree` silently rounds large integers next to floats, such as the words of a key."""
    words = np.array([2**31 + 1, 7], np.uint32)
    vector, unravel = ravel_pytree({"key": words, "w": floats(1, 2)})
    return Observed(unravel(vector)["key"], words)


LEAVES_COMPARED = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="truth value of an array",
    reason="leaves were compared with ==, which arrays do not answer",
    issue="jax-ml/jax@4768e0038f0f",
)


@probe(source="jax-ml/jax@4768e0038f0f", deviations=[LEAVES_COMPARED])
def all_leaves_of_arrays(env):
    """`all_leaves(..., is_leaf=)` of a list with an array; a list itself is no leaf."""
    arrays = [floats(1, 2)]

    def has_no_children(node):
        return tree_util.all_leaves([node])

    observed = {
        "arrays": tree_util.all_leaves(arrays, is_leaf=has_no_children),
        "list": tree_util.all_leaves([arrays], is_leaf=has_no_children),
    }
    return Observed(observed, {"arrays": True, "list": False})


NO_PATH_FOR_IS_LEAF = deviation(
    "jax<0.6.2",
    error="TypeError",
    match="is_leaf_takes_path",
    reason="`is_leaf` saw the node alone",
    issue="jax-ml/jax@160e59f10c2b",
)


@probe(source="jax-ml/jax@160e59f10c2b", deviations=[NO_PATH_FOR_IS_LEAF])
def leaves_by_path(env):
    """With `is_leaf_takes_path=True`, `is_leaf` decides by the path, too, from 0.6.2."""
    observed = tree_util.tree_map_with_path(
        lambda path, _: tree_util.keystr(path),
        {"a": [1, [2, 3]]},
        is_leaf=lambda path, _: len(path) == 2,
        is_leaf_takes_path=True,
    )
    return Observed(observed, {"a": ["['a'][0]", "['a'][1]"]})


NO_STATIC = deviation(
    "jax<0.9.1",
    error="AttributeError",
    match="static",
    reason="`dataclasses.field(metadata={'static': True})` was the only way",
    issue="jax-ml/jax@4f3314e9d6a2",
)


@probe(source="jax-ml/jax@4f3314e9d6a2", releases="jax>=0.4.36", deviations=[NO_STATIC])
def static_field(env):
    """A field `jax.tree.static()` of a registered dataclass is no leaf, from 0.9.1."""

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Power:
        base: Any
        exponent: int = jax.tree.static(default=3)

    f = jax.jit(lambda p: p.base**p.exponent)
    return Observed((f(Power(floats(2))), tree_util.tree_leaves(Power(1))), (floats(8), [1]))


FILLED_WITH_OBJECTS = deviation(
    "jax<0.8",
    outcome="ok",
    reason="vmap made the node of a marker to repeat the axis for its leaves",
    issue="jax-ml/jax@0303f4acad6a",
)


@probe(source="jax-ml/jax@0303f4acad6a", deviations=[FILLED_WITH_OBJECTS])
def constructor_that_checks(env):
    """Under `vmap`, a node whose constructor accepts only arrays can be an argument or a result."""

    @tree_util.register_pytree_node_class
    class Checked:
        def __init__(self, x):
            if not hasattr(x, "shape"):
                raise TypeError("this is no array")
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    x = floats(1, 2)
    observed = {
        "argument": outcome(lambda: jax.vmap(lambda node: 2 * node.x)(Checked(x))),
        "result": outcome(lambda: jax.vmap(Checked)(x)),
    }
    return Observed(observed, dict.fromkeys(observed, "ran"))


NO_SINGLE_LEVEL = deviation(
    "jax<0.10.2",
    error="AttributeError",
    match="flatten_one_level",
    reason="only whole trees could be flattened",
    issue="jax-ml/jax@991b35ab92f5",
)


@probe(source="jax-ml/jax@991b35ab92f5", deviations=[NO_SINGLE_LEVEL])
def one_level(env):
    """`jax.tree_util.flatten_one_level` returns the children of a node, from 0.10.2."""
    children, _ = tree_util.flatten_one_level({"b": [1, 2], "a": 3})
    return Observed(list(children), [3, [1, 2]])


NO_TEST_OF_NODES = deviation(
    "jax<0.10",
    error="AttributeError",
    match="is_tree_node",
    reason="there was no function that tests a type",
    issue="jax-ml/jax@f499352c2087",
)


@probe(source="jax-ml/jax@f499352c2087", deviations=[NO_TEST_OF_NODES])
def types_of_nodes(env):
    """`jax.tree_util.is_tree_node` is True for a type whose objects are nodes, from 0.10.0."""
    observed = {t.__name__: tree_util.is_tree_node(t) for t in (list, Point, type(None), int)}
    expected = {"list": True, "Point": True, "NoneType": True, "int": False}
    return Observed(observed, expected)


FIRST_KEY_REPEATED = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the names of the fields were not counted",
    issue="jax-ml/jax#39297",
)


@probe(source="jax-ml/jax#39297", releases="jax>=0.10.2", deviations=[FIRST_KEY_REPEATED])
def one_level_with_keys(env):
    """`flatten_one_level_with_keys` gives each field of a named tuple its own key."""
    children, _ = tree_util.flatten_one_level_with_keys(Point(1, 2))
    return Observed([str(key) for key, _ in children], [".x", ".y"])
