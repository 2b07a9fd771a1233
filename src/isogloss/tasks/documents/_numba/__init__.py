"""Kernels of tasks on documents."""
