"""Where sentences are worked on: shards in, counts out, summed in one fixed order.

`shards` cuts a corpus, `base` maps a pure function over the cuts, `threads` says how many cores a kernel may use and
`cache` where compiled kernels are kept. Nothing is imported here: `cache` must be able to run before Numba and NumPy.
"""
