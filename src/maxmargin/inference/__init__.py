"""Searching for the best labelling: exact where structure allows it, and said so where not."""
