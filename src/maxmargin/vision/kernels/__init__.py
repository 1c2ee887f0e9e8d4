"""Compiled loops that only images need: features of pixels, windows, filters, and labels on grids of regions.

They are written like those of the core, with the decorators of ``maxmargin.kernels``.
"""
