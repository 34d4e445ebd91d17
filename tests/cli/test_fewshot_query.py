"""``crossgraft fewshot --support … --query …``: what a head is told of the classes, and what it may be asked about."""

import numpy as np

import crossgraft as package

NETWORK = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "workers": 1}
WIDTH = 8


def test_class_weights_are_found_by_the_names_of_the_classes(workspace):
    """Without the cache they alone decide: exchanged weights exchange the answers, in whatever order classes are listed."""
    vector = np.random.default_rng(0).normal(size=WIDTH)
    np.savez("one.npz", benign=vector, malignant=-vector)
    np.savez("exchanged.npz", benign=-vector, malignant=vector)
    data = package.open_dataset("images")
    backwards = data.select_classes(("malignant", "benign"))

    def of_benign(support, weights):
        head = f"tip_adapter:alpha=0,class_weights={weights}"
        record = package.predict_from_support(support=support, query=data, head=head, **NETWORK).record
        column = record.class_names.index("benign")
        return [row.probabilities[column] for row in record.rows]

    first, exchanged = of_benign(data, "one.npz"), of_benign(data, "exchanged.npz")
    assert first == of_benign(backwards, "one.npz")
    np.testing.assert_allclose(np.add(first, exchanged), 1)
    assert not np.allclose(first, exchanged)
