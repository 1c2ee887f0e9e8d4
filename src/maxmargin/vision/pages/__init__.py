"""What reports show of models of images: scenes, parts and detectors, each in its own file."""
