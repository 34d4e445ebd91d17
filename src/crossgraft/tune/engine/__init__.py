"""The training engine: steps, phases, checkpoints, several processes. It knows no run directory and prints nothing."""
