"""What is added to the loss: one file each, named by the method's published name."""
