"""Normal forms: what two texts of the same meaning have in common.

`exact` takes away spelling (names, ids, metadata, layouts, attribute order), `canonical` also
what a compiler is free to choose (fusions, calls, copies, tuples, the order of what a loop
carries). Both are ordered lists of small passes that rewrite a module in place.
"""
