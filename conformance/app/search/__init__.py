"""Searches along an axis: releases, packages, commits, passes; and the reduction of a target."""
