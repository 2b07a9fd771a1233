"""Aligners that learn from hand-aligned sentences: rows, comparisons and a page; see `__main__`."""
