"""Measurements of Isogloss beside its peers; see docs/benchmarks.md for the tables and how to make them."""
