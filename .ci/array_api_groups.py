"""Groups the functions of the Array API standard: `array_api_groups.py CHECKOUT`.

Prints the table `[functions]` of `suites/array-api-tests/groups.toml`, from the stubs of every
version of the standard in the checkout; the newest version that has a function decides its group.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

STUBS = Path("array-api") / "src" / "array_api_stubs"
GROUPS = {
    "array_object": "array object",
    "constants": "constants",
    "creation_functions": "creation",
    "data_type_functions": "data types",
    "data_types": "data types",
    "elementwise_functions": "elementwise",
    "fft": "fft",
    "indexing_functions": "indexing",
    "info": "inspection",
    "linalg": "linear algebra",
    "linear_algebra_functions": "linear algebra",
    "manipulation_functions": "manipulation",
    "searching_functions": "searching",
    "set_functions": "set",
    "sorting_functions": "sorting",
    "statistical_functions": "statistical",
    "utility_functions": "utility",
}
"""The group of each module of stubs."""
ARRAY = "array"


def read_names(source: str) -> list[str]:
    """Return the names that a module of stubs defines; for the array object, its members."""
    tree = ast.parse(source)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if any(node.name in {ARRAY, "_array"} for node in classes):
        members = [member for node in classes for member in node.body]
        return [one.name for one in members if isinstance(one, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def group_functions(stubs: Path) -> dict[str, str]:
    """Return the group of each function, by name.

    Args:
        stubs: Folder of the versions of the standard, one folder each.
    """
    found: dict[str, str] = {}
    # Newest version first, as the first group of a function counts.
    for version in sorted(stubs.glob("_20*"), reverse=True):
        for module, group in GROUPS.items():
            file = version / f"{module}.py"
            names = read_names(file.read_text(encoding="utf-8")) if file.exists() else []
            for name in names:
                found.setdefault(name, group)
    return found


def main(checkout: str) -> int:
    """Print the table, and return an exit status."""
    found = group_functions(Path(checkout) / STUBS)
    if not found:
        sys.stderr.write(f"{checkout}: no stubs in {STUBS}, expected a checkout with submodules\n")
        return 2
    lines = ["[functions]"]
    for group in dict.fromkeys(GROUPS.values()):
        lines.append(f'"{group}" = [')
        members = sorted(name for name, of in found.items() if of == group and name != "__init__")
        lines += [f'    "{name}",' for name in members]
        lines.append("]")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
