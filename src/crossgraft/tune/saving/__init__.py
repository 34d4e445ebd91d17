"""A fine-tuned model as a folder: weights, what builds the network again, the model card; and its answers."""
