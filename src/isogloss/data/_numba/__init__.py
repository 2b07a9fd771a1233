"""Kernels over bytes."""
