"""Where networks and weights come from: timm, torchvision, a local checkpoint, or a function of the user."""
