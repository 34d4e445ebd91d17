"""What the engine knows of a plug-in; each kind of plug-in inherits from one of these."""
