"""What describes images: regions by words or by a network, patches by gradients or by a network."""
