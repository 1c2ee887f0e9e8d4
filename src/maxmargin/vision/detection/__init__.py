"""Finding objects in images: deformable part models with positive and negative parts."""
