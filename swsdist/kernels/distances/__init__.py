"""Local distances between frames, in fixed point: what each makes of a frame, and the map from a product to 12 bits."""
