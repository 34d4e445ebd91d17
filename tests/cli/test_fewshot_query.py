"""``crossgraft fewshot --support … --query …``: what a head is told of the classes, and what it may be asked about."""

import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

import crossgraft as package
from crossgraft.errors import CrossgraftWarning, UsageError
from crossgraft.fewshot import MetaDataset, TipAdapterHead
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.predict.page import FEWEST_WAYS
from crossgraft.tune.record import PredictionRecord

NETWORK = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "workers": 1}
WIDTH = 8
MODEL = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--workers", "1")


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


def test_class_weights_that_name_no_class_are_refused(workspace):
    """Names of classes are sorted as text, which is not the order of the data where they are numbers."""
    head = TipAdapterHead(class_weights=np.eye(WIDTH)[:2])
    for old, new in (("benign", "9"), ("malignant", "10")):
        shutil.copytree(workspace / "images" / old, workspace / "numbered" / new)
    package.predict_from_support(support="images", query="images", head=head, **NETWORK)
    with pytest.raises(UsageError, match="which does not say which class a vector belongs to"):
        package.predict_from_support(support="numbered", query="images", head=head, **NETWORK)


def test_the_next_command_has_episodes_that_these_classes_are_enough_for(workspace, crossgraft):
    random = np.random.default_rng(0)
    for name in ("benign", "malignant"):
        (workspace / "new" / name).mkdir(parents=True)
        Image.fromarray(random.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(workspace / "new" / name / "a.png")
    done = crossgraft("fewshot", "--support", "images", "--query", "new", "--head", "ncc", *MODEL)
    said = "crossgraft fewshot images --heads ncc,logistic --model zoo.yaml:narrow --sampler meta_dataset:min_ways=2"
    assert said in " ".join(done.out.split())
    assert MetaDataset().min_ways == FEWEST_WAYS


def test_a_head_without_probabilities_is_refused(workspace):
    with pytest.raises(UsageError, match="RidgeClassifier gives no probabilities"):
        package.predict_from_support(support="images", query="images", head=RidgeClassifier(), **NETWORK)


def test_queries_may_lack_the_label_column_of_the_support_set(workspace, crossgraft):
    files = sorted((workspace / "images").rglob("*.png"))
    named = [file.relative_to(workspace) for file in files]
    labelled = "\n".join(["image,diagnosis", *[f"{name},{name.parent.name}" for name in named]])
    (workspace / "support.csv").write_text(labelled)
    (workspace / "query.csv").write_text("\n".join(["image,label", *[f"{name},unread" for name in named]]))
    pixels = np.stack([np.asarray(Image.open(file)) for file in files])
    np.savez("support.npz", images=pixels, diagnosis=[name.parent.name for name in named])
    np.savez("query.npz", images=pixels)
    typed = ("--head", "ncc", "--label-column", "diagnosis", *MODEL)
    shown = []
    for support, query in (("support.csv", "query.csv"), ("support.npz", "query.npz")):
        done = crossgraft("fewshot", "--support", support, "--query", query, *typed, "--json")
        assert done.code == 0, done.err
        record = PredictionRecord.model_validate_json(done.out)
        assert not record.metrics and len(record.rows) == len(files)
        shown.append([row.decision for row in record.rows])
    assert shown[0] == shown[1]
    with_labels = crossgraft("fewshot", "--support", "support.csv", "--query", "support.csv", *typed, "--json")
    assert PredictionRecord.model_validate_json(with_labels.out).metrics
    wrong = crossgraft("fewshot", "--support", "query.csv", "--query", "support.csv", *typed)
    assert wrong.code == 3 and "The table query.csv has no column diagnosis" in wrong.err
    folder = crossgraft("fewshot", "--support", "images", "--query", "query.csv", *typed)
    assert folder.code == 3 and "The table query.csv has no column diagnosis" in folder.err


def test_what_a_head_warns_of_is_in_the_record_and_on_the_page(workspace):
    files = sorted((workspace / "images").rglob("*.png"))
    firsts = {file.parent.name: file for file in reversed(files)}
    (workspace / "one.csv").write_text("\n".join(["image,label", *[f"{file},{name}" for name, file in firsts.items()]]))
    with pytest.warns(CrossgraftWarning, match="CoPA with one image per class") as heard:
        found = package.predict_from_support(support="one.csv", query="images", head="copa:steps=1", out="run", **NETWORK)
    text = str(heard[0].message)
    assert found.record.warnings.count(text) == 1
    assert "CoPA with one image per class" in (workspace / "run" / "report.html").read_text(encoding="utf-8")


def test_prototypes_in_the_place_of_class_weights_are_told(workspace, crossgraft):
    np.savez("given.npz", benign=np.ones(WIDTH), malignant=-np.ones(WIDTH))
    heads = ("tip_adapter", "tip_adapter:class_weights=given.npz")
    same = NETWORK | {"support": "images", "query": "images"}
    plain, given = (package.predict_from_support(head=head, **same).record.notes for head in heads)
    (note,) = set(plain) - set(given)
    assert note.startswith("No class weights were given, so that prototypes take their place")
    sampler = "n_way_k_shot:ways=2,shots=2"
    done = crossgraft(
        "fewshot", "images", *MODEL, "--heads", ",".join(heads), "--episodes", "2", "--sampler", sampler, "--out", "run"
    )
    assert done.code == 0 and f"tip_adapter: {note}" in " ".join(done.err.split())
    record = FewshotRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert [record.head(name).warnings for name in heads] == [{note: 2}, {}]
    assert note in (workspace / "run" / "report.html").read_text(encoding="utf-8")


def test_an_error_of_a_head_of_another_package_is_told_with_its_name(workspace):
    with pytest.raises(UsageError, match=r"Head KNeighborsClassifier: ValueError: .*n_neighbors"):
        package.predict_from_support(support="images", query="images", head=KNeighborsClassifier(50), **NETWORK)
