"""Kernels of features: mixing codes, tables of keys, walking templates, products with sparse matrices."""
