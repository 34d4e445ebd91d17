"""What is fed into training: images in memory, which rows make which batch, batches made ahead."""
