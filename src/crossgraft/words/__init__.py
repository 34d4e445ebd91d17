"""Text that other people wrote, made safe for the place where it is shown or kept."""
