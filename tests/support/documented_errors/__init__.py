"""What makes each case of docs/errors.md in a workspace, and the command that meets it: a function named as the case."""

MODELS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--workers", "1")
ALL_ROWS = ("--holdout", "0")
"""An image that is wrong is among the rows that are looked at, wherever it would be in a split."""
PLAIN = ("rank", "images", *MODELS, *ALL_ROWS, "--out", "run")
TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--out", "run")
