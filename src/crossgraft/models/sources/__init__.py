"""Where networks and weights come from: timm, a local checkpoint, or a function of the user."""
