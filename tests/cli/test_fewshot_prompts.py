"""``crossgraft fewshot --prompts``: class weights from the text tower beside the image tower."""

import json

import numpy as np
import pytest
import torch

import crossgraft as package
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.episodes import NWayKShot
from crossgraft.fewshot.evaluate import episode_of
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.models import load_backbone
from crossgraft.tune.record import PredictionRecord
from support import text_towers as made

FLAGS = ("--sampler", "n_way_k_shot:ways=2,shots=2,queries=2", "--episodes", "6", "--workers", "1", "--quiet", "--no-images")
PROMPTS = """
templates: ["a photo of {class}", "an image of {class}"]
classes: {benign: a harmless mole, malignant: [melanoma, a skin cancer]}
"""


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips") / "clip"
    return folder, made.write_transformers_clip(folder)


@pytest.fixture
def model(clip, workspace):
    (workspace / "reader").symlink_to(clip[0])
    (workspace / "prompts.yaml").write_text(PROMPTS)
    return ("--model", "transformers:reader")


@torch.no_grad()
def test_the_zero_shot_row_is_the_pipeline_of_transformers(model, clip, workspace, crossgraft):
    outcome = crossgraft(
        "fewshot", "images", *model, *FLAGS, "--heads", "tip_adapter,ncc", "--prompts", "a photo of a {class}", "--out", "r"
    )
    assert outcome.code == 0, outcome.err
    record = FewshotRecord.model_validate_json((workspace / "r" / "report.json").read_bytes())
    assert {row.head for row in record.heads} == {"tip_adapter", "ncc", "zero_shot"} and record.baseline == "tip_adapter"
    assert record.prompts.texts == {"benign": ["benign"], "malignant": ["malignant"]}
    assert not any("prototypes take their place" in text for row in record.heads for text in row.warnings)
    dataset = package.open_dataset("images", default_split=True)
    tokens = made.transformers.AutoTokenizer.from_pretrained(clip[0])(
        [f"a photo of a {name}" for name in dataset.class_names], padding=True, return_tensors="pt"
    )
    prepared = prepare_batch(
        [dataset.read(row) for row in range(len(dataset))], load_backbone("transformers:reader").preprocessing
    )
    logits = clip[1](pixel_values=prepared, **tokens).logits_per_image.numpy()
    names = np.array(dataset.class_names)
    labels = names[dataset.targets]
    episodes = [episode_of(labels, NWayKShot(ways=2, shots=2, queries=2), 0, number) for number in range(6)]
    right = [np.mean(names[logits[each.query].argmax(axis=1)] == labels[each.query]) for each in episodes]
    assert record.head("zero_shot").accuracy == pytest.approx(np.mean(right), abs=1e-12)


def test_a_file_of_prompts_is_said_on_the_page_and_decides_the_run(model, workspace, crossgraft):
    command = ("fewshot", "images", *model, *FLAGS, "--heads", "zero_shot", "--prompts", "prompts.yaml", "--out", "r")
    assert crossgraft(*command).code == 0
    page = (workspace / "r" / "report.html").read_text(encoding="utf-8")
    for said in ("Class weights from text", "melanoma · a skin cancer", "an image of {class}", "CLIPTextModelWithProjection"):
        assert said in page
    assert "a harmless mole" in (workspace / "r" / "run.json").read_text()
    assert crossgraft(*command).code == 0  # the same run again
    (workspace / "prompts.yaml").write_text(PROMPTS.replace("melanoma", "cancer"))
    again = crossgraft(*command)
    assert again.code == UsageError.exit_code and "prompts" in again.err


def test_meta_adapter_learns_with_texts_of_base_classes(model, workspace, crossgraft):
    outcome = crossgraft(
        *("fewshot", "digits", *model, *FLAGS, "--prompts", "the number {class}"),
        *("--heads", "meta_adapter:epochs=1", "--base-classes", "0,1,2", "--json"),
    )
    assert outcome.code == DataError.exit_code and "same text" in outcome.err  # to a tokenizer of letters digits are one
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    texts = {str(number): name for number, name in enumerate(names)}
    (workspace / "digits.yaml").write_text(json.dumps({"templates": ["the {class}"], "classes": texts}))
    outcome = crossgraft(
        *("fewshot", "digits", *model, *FLAGS, "--prompts", "digits.yaml"),
        *("--heads", "meta_adapter:epochs=1", "--base-classes", "0,1,2", "--json"),
    )
    assert outcome.code == 0, outcome.err
    assert [row["head"] for row in sorted(json.loads(outcome.out)["heads"], key=lambda row: row["head"])] == [
        "meta_adapter:epochs=1",
        "zero_shot",
    ]


def test_one_task_with_prompts(model, workspace, crossgraft):
    command = ("fewshot", "--support", "images", "--query", "images", *model, "--workers", "1", "--quiet", "--no-images")
    outcome = crossgraft(*command, "--head", "zero_shot", "--prompts", "prompts.yaml", "--out", "r")
    assert outcome.code == 0, outcome.err
    record = PredictionRecord.model_validate_json((workspace / "r" / "report.json").read_bytes())
    assert any("2 templates for 2 classes" in note for note in record.notes)
    from_python = package.predict_from_support(
        support="images",
        query="images",
        model="transformers:reader",
        head="zero_shot",
        prompts={
            "templates": ["a photo of {class}", "an image of {class}"],
            "classes": {"benign": "a harmless mole", "malignant": ["melanoma", "a skin cancer"]},
        },
    )
    assert [row.probabilities for row in from_python.record.rows] == [row.probabilities for row in record.rows]
    refused = crossgraft(*command, "--head", "ncc", "--prompts", "prompts.yaml")
    assert refused.code == UsageError.exit_code and "ncc takes none" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--prompts", "a photo"), UsageError.exit_code, "no {class}"),
        (
            ("--prompts", "a {class}", "--model", "zoo.yaml:narrow", "--code", "tiny_models.py"),
            UsageError.exit_code,
            "has no text tower",
        ),
        (("--prompts", "a {class} of which is said more than fits in it"), UsageError.exit_code, "nothing is cut off"),
    ],
)
def test_what_is_refused_before_an_image_is_looked_at(arguments, code, words, model, crossgraft):
    typed = arguments if "--model" in arguments else (*model, *arguments)
    outcome = crossgraft("fewshot", "images", *FLAGS, *typed, "--heads", "tip_adapter")
    assert outcome.code == code and words in outcome.err
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        package.run_episodes(
            "images",
            model=dict(zip(typed[::2], typed[1::2], strict=True))["--model"],
            allow_code="tiny_models.py",
            heads="tip_adapter",
            prompts=arguments[1],
        )
