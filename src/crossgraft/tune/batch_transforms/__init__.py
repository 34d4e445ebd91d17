"""What is done to a batch: one file each, named by the method's published name."""
