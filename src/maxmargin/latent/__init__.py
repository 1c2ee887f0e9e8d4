"""Latent variables: choose a convex bound, minimise it, choose the next."""
