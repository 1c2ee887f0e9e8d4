"""Models of scenes over counts of words by region."""
