"""What training minimises, image by image."""
