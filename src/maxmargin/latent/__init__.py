"""Problems with hidden variables, as sequences of convex bounds."""
