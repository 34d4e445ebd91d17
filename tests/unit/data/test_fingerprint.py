"""Equal pixels, labels and groups: equal fingerprint. Anything else: another one."""

import numpy as np
import pytest

from crossgraft.data.fingerprint import dataset_fingerprint, image_digest, listing_fingerprint

PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)


@pytest.mark.parametrize(
    "other",
    [PIXELS.reshape(4, 3, 1), PIXELS.astype(np.uint16), PIXELS + np.uint8(1), PIXELS[::-1], PIXELS.view(np.int8)],
    ids=["shape", "type", "samples", "order", "sign"],
)
def test_other_images_have_other_digests(other):
    assert image_digest(PIXELS) != image_digest(other)


def test_memory_layout_and_byte_order_do_not_matter():
    wide = PIXELS.astype(np.uint16)
    assert image_digest(np.asfortranarray(wide)) == image_digest(wide)
    assert image_digest(wide.astype(">u2")) == image_digest(wide)


def test_labels_groups_and_order_matter():
    digests, labels, groups = [b"a" * 32, b"b" * 32], np.array(["x", "y"]), np.array(["p", "q"])
    variants = [
        dataset_fingerprint(digests, labels, groups),
        dataset_fingerprint(digests, labels, None),
        dataset_fingerprint(digests, labels[::-1], groups),
        dataset_fingerprint(digests, labels, groups[::-1]),
        dataset_fingerprint(digests[::-1], labels, groups),
        dataset_fingerprint(digests[:1], labels[:1], groups[:1]),
    ]
    assert len(set(variants)) == len(variants)
    assert dataset_fingerprint(digests, labels.copy(), groups.copy()) == variants[0]


def test_every_label_of_many_counts():
    labels = np.zeros((2, 2000), dtype=np.int64)
    other = labels.copy()
    other[1, 1000] = 1
    assert dataset_fingerprint([b"a" * 32] * 2, labels, None) != dataset_fingerprint([b"a" * 32] * 2, other, None)


def test_the_listing_covers_names_labels_and_groups():
    names, labels, groups = ["1.png", "2.png"], np.array([0, 1]), np.array(["p", "q"])
    variants = [
        listing_fingerprint(names, labels, groups),
        listing_fingerprint(names, labels, None),
        listing_fingerprint(names[::-1], labels, groups),
        listing_fingerprint(names, labels[::-1], groups),
        listing_fingerprint(names, labels, groups[::-1]),
    ]
    assert len(set(variants)) == len(variants)
