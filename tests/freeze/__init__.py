"""Runs of the command line whose numbers, files and keys are kept, so that a renovation can be shown to change none."""
