"""Heads on real lesions, one class against the others, that never saw a letter: sensitive at most, though it moves them."""

import csv
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from crossgraft.audit import audit_trained, subject_of
from crossgraft.audit.explained import Start, features_of
from crossgraft.audit.mitigation import GroupedRows
from crossgraft.audit.mitigation._mitigation import logistic_scorer
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.confounders import Tag
from crossgraft.models import load_backbone, read_zoo
from crossgraft.progress import Reporter

EXAMPLES = Path(__file__).parents[2] / "examples" / "own_models"
TAG = Tag(size=0.125)
CLASSES = ("mel", "bkl", "bcc", "akiec", "df", "vasc")
SIDE = 64


@pytest.fixture(scope="module")
def lesions():
    """60 pictures of each class, with its lesions apart."""

    def read(folder):
        with tarfile.open(folder / "datasets" / "ham10000_subset_jpg200x150.tar") as archive:
            member = archive.extractfile("ham10000_subset/metadata.csv")
            rows = list(csv.DictReader(io.TextIOWrapper(member, "utf-8")))
            taken = [row for name in CLASSES for row in [each for each in rows if each["dx"] == name][:60]]
            names = [f"ham10000_subset/images/{row['image_id']}.jpg" for row in taken]
            pictures = [np.asarray(Image.open(archive.extractfile(name))) for name in names]
        return pictures, [row["dx"] for row in taken], [row["lesion_id"] for row in taken]

    return read


@pytest.mark.real_data
@pytest.mark.slow
def test_heads_that_never_saw_a_letter_do_not_rely_on_it(real_data, lesions):
    pictures, labels, groups = lesions(real_data)
    zoo = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=real_data / "weights", allow_code=EXAMPLES)
    spec = next(each for each in zoo if each.name == "mobilenetv2_035 · ImageNet")
    start = load_backbone(spec, device="cpu", weights_dir=real_data / "weights", image_size=SIDE)
    lesion = np.unique(groups, return_inverse=True)[1]
    is_test = np.isin(lesion, np.random.default_rng(0).permutation(lesion.max() + 1)[: (lesion.max() + 1) // 2])
    quiet, outcomes, moved = Reporter(quiet=True), dict[str, str](), dict[str, bool]()
    features = None
    for name in CLASSES:
        named = np.where(np.array(labels) == name, name, "others")
        data = dataset_from_arrays(pictures, named, groups=groups, name="ham10000")
        features = features_of(start, data, quiet) if features is None else features
        train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
        is_positive = named == name
        flags = is_positive[train].astype(np.int64)
        head = logistic_scorer(GroupedRows(features[train].astype(np.float64), flags, np.zeros_like(flags)))

        def answers(images, head=head):
            with torch.inference_mode():
                said = start(prepare_batch(images, start.preprocessing)).features.double().numpy()
            return head.probabilities(said)

        subject = subject_of(answers, class_names=["others", name])
        of_start = Start(start, spec.name, data.take(train), is_positive[train])
        found = audit_trained(subject, data.take(test), TAG, positive=name, start=of_start)
        outcomes[name] = found.outcome
        moved[name] = found.pull is not None and found.pull.may_rely
    assert set(outcomes.values()) <= {"sensitive", "passes", "undecided"}, outcomes
    assert any(moved.values()), "the letter moves none of these heads, so that they show nothing"
