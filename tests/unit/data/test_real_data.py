"""Real data sets open as their description says."""

import tarfile

import numpy as np
import pytest

from crossgraft.data import make_split, open_dataset

pytestmark = pytest.mark.real_data


@pytest.fixture
def unpacked(real_data, tmp_path):
    """`unpacked("name.tar")`: the folder into which an archive was extracted."""

    def unpack(name):
        with tarfile.open(real_data / "datasets" / name) as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path

    return unpack


@pytest.mark.parametrize(
    ("name", "split", "counts"),
    [
        ("retinamnist", "train", (486, 128, 206, 194, 66)),
        ("retinamnist", "val", (54, 12, 28, 20, 6)),
        ("breastmnist", "train", (147, 399)),
        ("breastmnist", "test", (42, 114)),
        ("pneumoniamnist", "train", (1214, 3494)),
        ("medical_mnist_6x400_gray64", "train", (400,) * 6),
        ("cifar10_jpeg_5000_1000", "train", (500,) * 10),
    ],
)
def test_npz_files_have_the_documented_counts(real_data, name, split, counts):
    dataset = open_dataset(real_data / "datasets" / f"{name}.npz", use_split=split)
    assert dataset.class_counts == counts


def test_brain_mri_slices_of_all_modes_and_sizes(unpacked):
    dataset = open_dataset(unpacked("brain_mri_tumor_yes_no_253.tar.gz"))
    assert dataset.class_names == ("no", "yes")
    assert dataset.class_counts == (98, 155)
    assert sum(dataset.image_kinds.values()) == 253
    assert {dataset.read(row).shape[-1] for row in range(253)} == {1, 3}


def test_skin_lesions_by_table_with_lesions_as_groups(unpacked):
    folder = unpacked("ham10000_subset_jpg200x150.tar") / "ham10000_subset"
    dataset = open_dataset(folder / "metadata.csv", image_root=folder / "images", group_column="lesion_id")
    assert len(dataset) == 2075
    assert len(np.unique(dataset.groups)) == 1562
    assert dict(zip(dataset.class_names, dataset.class_counts, strict=True))["nv"] == 1342
    assert dataset.image_kinds == {"150×200 RGB 8-bit": 2075}
    assert set(dataset.attributes) == {"dx_type", "age", "sex", "localization"}
    split = make_split(dataset.targets, dataset.groups, fractions={"train": 0.8, "test": 0.2}, seed=0)
    assert not set(dataset.groups[split.rows("train")]) & set(dataset.groups[split.rows("test")])
    shares = np.bincount(dataset.targets[split.rows("test")], minlength=7) / dataset.class_counts
    np.testing.assert_allclose(shares, 0.2, atol=0.02)
