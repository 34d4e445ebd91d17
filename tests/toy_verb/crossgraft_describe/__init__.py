"""A verb in one folder: ``crossgraft describe`` counts the images of each class."""
