"""What is trained: one file each, named by the method's published name."""
