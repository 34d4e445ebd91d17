"""A verb in a package of its own: ``crossgraft describe`` counts the images of each class."""
