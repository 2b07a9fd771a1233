"""Kernels over bytes: reading and writing links, joining words into lines."""
