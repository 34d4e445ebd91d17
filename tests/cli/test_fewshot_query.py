"""``crossgraft fewshot --support … --query …``: one task: what a head is told of it, and what it answers."""

import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

import crossgraft as package
from crossgraft.errors import CrossgraftWarning, RunDirectoryError, UsageError
from crossgraft.fewshot import MetaDataset, TipAdapterHead
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.predict.page import FEWEST_WAYS
from crossgraft.tune.record import PredictionRecord

NETWORK = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "workers": 1}
WIDTH = 8
MODEL = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--workers", "1")
ONE_TASK = ("--support", "images", *MODEL)


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


def test_one_task_gives_what_predict_gives(workspace, run_once):
    done = run_once("fewshot", *ONE_TASK, "--query", "images", "--head", "copa:steps=5", out="run")
    assert "copa:steps=5 adapted to" in " ".join(done.out.split())
    assert "are in the support set, pixel by pixel" in " ".join(done.out.split())
    record = PredictionRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert record.head == "copa:steps=5" and record.num_support == record.num_images == len(record.rows)
    assert record.metrics and record.most_certain and record.temperature is None
    table = (workspace / "run" / "predictions.csv").read_text().splitlines()
    assert table[0].startswith("image,predicted,probability,decision") and len(table) == len(record.rows) + 1
    html = (workspace / "run" / "report.html").read_text()
    assert str(workspace) not in html and "--support</span>" in html
    assert "its probabilities are not calibrated" in html
    found = package.predict_from_support(support="images", query="images", head="copa:steps=5", **NETWORK)
    assert [row.probabilities for row in found.record.rows] == [row.probabilities for row in record.rows]
    data = package.open_dataset("images")
    again = package.predict_from_support(
        support=data, query=[data.read(row) for row in range(len(data))], head="copa:steps=5", **NETWORK
    )
    assert [row.decision for row in again.record.rows] == [row.decision for row in record.rows]
    assert not again.record.metrics
    objects = package.predict_from_support(support=data, query=data, head="ncc", out=workspace / "python", **NETWORK)
    assert objects.report.is_file()
    inside = package.predict_from_support(support=data, query=data, head="tsa:steps=2", **NETWORK)
    assert len(inside.to_frame()) == len(data)


def test_the_next_command_names_each_head_once(workspace, crossgraft):
    for folder in sorted((workspace / "images").iterdir()):
        (workspace / "other" / folder.name).mkdir(parents=True)
        for image in sorted(folder.iterdir())[:3]:
            image.rename(workspace / "other" / folder.name / image.name)
    done = crossgraft("fewshot", *ONE_TASK, "--query", "other", "--head", "ncc", "--out", "run")
    assert "crossgraft fewshot images --heads ncc,logistic --model zoo.yaml:narrow" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("fewshot", "--support", "images", "--model", "zoo.yaml:narrow"), "there is no --query"),
        (("fewshot", "images", *ONE_TASK, "--query", "images"), "cannot be used with DATA"),
        (("fewshot", *ONE_TASK, "--query", "images", "--episodes", "3"), "cannot be used with --episodes"),
        (("fewshot", "images", *MODEL, "--head", "ncc"), "--head is for --support and --query"),
        (("fewshot", "images", *MODEL, "--use-split", "test"), "--use-split is for --support and --query"),
        (("fewshot", *ONE_TASK, "--query", "images", "--head", "ncc,copa"), "One task has one head"),
        (("fewshot", *ONE_TASK, "--query", "images", "--head", "meta_adapter"), "has to learn on base classes"),
        (("fewshot", *MODEL), "Name the images that tasks are drawn from"),
        (("fewshot", *ONE_TASK, "--query", "nowhere"), "nowhere"),
    ],
)
def test_one_task_that_cannot_be(workspace, crossgraft, typed, said):
    done = crossgraft(*typed)
    assert done.code in (2, 3) and said in " ".join(done.err.split())


def test_patients_on_both_sides_are_counted_and_not_named(drawings, workspace):
    lines = (workspace / "drawings.csv").read_text().splitlines()
    shown = [line for line in lines[1:] if not line.endswith("w2")]
    for name, rows in (("support.csv", lines[1:]), ("query.csv", shown)):
        (workspace / name).write_text("\n".join([lines[0], *rows]))
    common = {**NETWORK, "head": "ncc"}
    columns = {"label_column": "character", "group_column": "writer"}
    found = package.predict_from_support(support="support.csv", query="query.csv", **columns, **common)
    (warning,) = found.record.warnings
    assert "2 groups (column writer) are on both sides" in warning and "w1" not in warning
    assert "too high" in warning and found.record.num_seen == len(shown)
    of_others = package.predict_from_support(support="query.csv", query="support.csv", out="of", **columns, **common)
    (warning,) = of_others.record.warnings
    unseen = len(lines) - 1 - len(shown)
    assert f"They are not measured: the metrics are of {unseen} other images." in warning
    assert (of_others.record.num_seen, of_others.record.metrics[0].num_images) == (len(shown), unseen)
    (workspace / "others.csv").write_text("\n".join([lines[0].replace("writer", "case"), *lines[1:]]))
    other = package.open_dataset("others.csv", label_column="character", group_column="case")
    of_case = package.predict_from_support(support=package.open_dataset("query.csv", **columns), query=other, **common).record
    assert "case" not in " ".join(of_case.warnings)  # numbers of cases are no writers
    (workspace / "query.csv").write_text("\n".join([lines[0], *reversed(shown)]))
    with pytest.raises(RunDirectoryError, match="The data changed since the run"):
        package.predict_from_support(support="query.csv", query="support.csv", out="of", **columns, **common)


def test_queries_inside_the_backbone_come_a_few_at_a_time(workspace, monkeypatch):
    same = {**NETWORK, "head": "tsa:steps=2"}
    data = package.open_dataset("images")
    whole = package.predict_from_support(support=data, query=data, **same)
    monkeypatch.setattr("crossgraft.fewshot.predict_from_support.QUERIES_AT_ONCE", 3)
    parts = package.predict_from_support(support=data, query=data, **same)
    for one, other in zip(whole.record.rows, parts.record.rows, strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-6)


def test_columns_are_those_of_the_table(drawings, workspace, crossgraft):
    """A table to learn from, and a folder of new images; and the other way round."""
    columns = ("--label-column", "character")
    model = (*MODEL, "--head", "ncc")
    done = crossgraft("fewshot", "--support", "drawings.csv", "--query", "drawn", *columns, *model, "--out", "run")
    assert done.code == 0, done.err
    record = PredictionRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert len(record.rows) == 24 and record.num_support == 24
    assert crossgraft("fewshot", "--support", "images", "--query", "drawings.csv", *columns, *model).code == 0
    both = crossgraft("fewshot", "--support", "images", "--query", "images", *columns, *model)
    assert both.code == 2 and "--label-column" in both.err


def test_the_seed_is_that_of_the_head(workspace):
    same = {**NETWORK, "support": "images", "query": "images"}

    def shares(head, seed):
        rows = package.predict_from_support(head=head, seed=seed, **same).record.rows
        return [row.probabilities for row in rows]

    drawn = "copa:init=random,steps=2"
    first = shares(drawn, 0)
    assert first != shares(drawn, 1) == shares(f"{drawn},seed=1", 5)
    assert shares(f"{drawn},seed=0", 5) == shares({"name": "copa", "init": "random", "steps": 2, "seed": 0}, 5) == first
    assert shares(drawn, np.int64(0)) == first
    with pytest.raises(UsageError, match=r"seed must be a whole number, not 1\.5"):
        shares(drawn, 1.5)


def test_what_opens_files_is_refused_where_all_is_open(workspace):
    same = {**NETWORK, "head": "ncc"}
    data = package.open_dataset("images")
    arrays = [data.read(row) for row in range(3)]
    for query, support, option in (
        (data, data, {"label_column": "x"}),
        (arrays, data, {"skip_unreadable": True}),
        (data, "images", {"use_split": "test"}),
    ):
        with pytest.raises(UsageError, match=f"{next(iter(option))} belongs to opening the data"):
            package.predict_from_support(support=support, query=query, **option, **same)
    found = package.predict_from_support(support="images", query=iter(arrays), skip_unreadable=True, **same)
    assert len(found.record.rows) == 3
