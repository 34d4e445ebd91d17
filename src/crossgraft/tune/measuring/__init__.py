"""After training: metrics on unseen rows, temperature, thresholds, curves, how far the features moved."""
