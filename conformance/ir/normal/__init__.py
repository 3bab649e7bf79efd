"""Normal forms: texts of the same meaning have the same one.

The exact form removes spelling (names, ids, metadata, layouts, the order of attributes), the
canonical form also the free choices of a compiler (fusions, calls, copies, tuples, the order of
loop carries). Both are ordered lists of small passes that rewrite a module in place.
"""
