"""What runs inside a cell: pytest, told what to run, and telling what comes of it."""
