"""What is done to an image: one file each, named by the method's published name."""
