"""Benchmarks: what a run costs, as rates and as ratios measured in one go.

The machines that these run on are shared and noisy, so a figure alone says little: each benchmark measures
something simpler in the same run, on the same machine, and prints the ratio. Not imported by the product.
"""
