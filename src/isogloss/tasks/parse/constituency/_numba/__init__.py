"""Kernels of parsers."""
