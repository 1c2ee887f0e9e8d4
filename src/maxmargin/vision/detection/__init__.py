"""Objects found in images: deformable parts, mixtures of them, and the boxes they are learned from."""
