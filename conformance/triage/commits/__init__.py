"""Search for the commit of a package between two of its releases."""
