"""Parts that nobody labelled: a pool of filters, a selection of them, and training together with what they vote for."""
