"""Kernels of extractors."""
