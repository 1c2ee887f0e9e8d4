"""Features of tokens for taggers."""

from .estimators.token_features import TokenFeatures

__all__ = ["TokenFeatures"]
