"""Fine-tuning: what is trained, what is added to the loss, what is done to batches and images; and predicting with the result."""
