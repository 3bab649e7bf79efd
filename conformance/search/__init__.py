"""Search for the point, or the set of units, that makes a difference.

A search has points, a target that is tried at each, a predicate that decides whether a point is
good or bad, and trials: the log of all samples. Its strategies are `bisection`, for points in an
order, and `ddmin`, for sets. Bisect, blame, passes, upgrade and shrink are uses of it.
"""
