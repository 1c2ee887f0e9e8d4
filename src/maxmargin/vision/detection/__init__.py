"""Objects found in images: filters on cells of gradients, their parts, and where they respond."""
