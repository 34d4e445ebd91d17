"""Class weights from text: how prompts are given, what vectors they come to, and what heads do with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.fewshot import MetaAdapterHead, NccHead, TipAdapterHead, ZeroShotHead, class_weights_from_prompts
from crossgraft.fewshot.choice import choose_heads, heads_left_out
from crossgraft.fewshot.class_weights import ClassPrompts, encode_prompts, read_prompts
from crossgraft.models import ModelSpec, TextTower, load_backbone

WIDTH = 6
TEMPLATES = ["a photo of {class}", "{class} and {class}"]
KNOWN = sorted(["a", "photo", "of", "and", "cat", "dog", "cell", "tumour"])


class Words:
    """One token a word; those that are not known are one token, too."""

    def numbers(self, text):
        return [KNOWN.index(word) + 1 if word in KNOWN else 0 for word in text.split()]

    def batch(self, texts):
        rows = [self.numbers(text) for text in texts]
        longest = max(map(len, rows))
        return {"tokens": torch.tensor([row + [0] * (longest - len(row)) for row in rows])}


@pytest.fixture
def tower():
    torch.manual_seed(0)
    table = nn.Embedding(len(KNOWN) + 1, WIDTH)

    def run(network, tokens):
        places = torch.arange(1, tokens["tokens"].shape[1] + 1)[:, None]
        return ((tokens["tokens"] > 0)[..., None] * network(tokens["tokens"]) * places).sum(dim=1)

    return TextTower("words", "Embedding", table, run, Words(), 9, len(KNOWN) + 1, nn.Linear(4, WIDTH, bias=False), 50.0, -2.0)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def literal_weights(tower, names):
    """Section 3.1.4 of CLIP, one text at a time."""
    found = {}
    for name in names:
        vectors = [tower.encode([template.replace("{class}", name)])[0].astype(np.float64) for template in TEMPLATES]
        mean = sum(vector / np.linalg.norm(vector) for vector in vectors) / len(vectors)
        found[name] = mean / np.linalg.norm(mean)
    return found


def test_weights_are_means_of_unit_vectors_of_unit_length(tower):
    found, expected = class_weights_from_prompts(tower, ["cat", "dog"], TEMPLATES), literal_weights(tower, ["cat", "dog"])
    for name, vector in expected.items():
        np.testing.assert_allclose(found[name], vector, rtol=0, atol=1e-6)
        assert found[name].dtype == np.float32
    several = class_weights_from_prompts(tower, {"animal": ["cat", "dog"], "cell": "cell"}, TEMPLATES[:1])
    both = unit(tower.encode(["a photo of cat", "a photo of dog"])).mean(axis=0)
    np.testing.assert_allclose(several["animal"], unit(both), rtol=0, atol=1e-6)


def test_tip_adapter_with_text_written_out(tower):
    rng = np.random.default_rng(0)
    names = np.array(["cat", "dog", "cell"])
    labels, support, queries = np.repeat(names, 3), rng.normal(size=(9, WIDTH)), rng.normal(size=(5, WIDTH))
    weights = literal_weights(tower, names)
    expected = np.zeros((5, 3))
    for row, query in enumerate(queries):
        for column, name in enumerate(sorted(names)):
            expected[row, column] = 100 * unit(query) @ weights[name]
            for key, label in zip(support, labels, strict=True):
                if label == name:
                    expected[row, column] += 1.5 * np.exp(-2.0 * (1 - unit(query) @ unit(key)))
    prompted = encode_prompts(tower, ClassPrompts(tuple(TEMPLATES)), list(names))
    head = prompted.given_to(TipAdapterHead(alpha=1.5, beta=2.0)).fit(support, labels)
    np.testing.assert_allclose(head._finite_logits(queries).numpy(), expected, rtol=0, atol=1e-4)
    assert not head.uses_prototypes_


def test_zero_shot_decides_as_the_network_itself(tower):
    names, images = ["cat", "cell", "dog"], np.random.default_rng(0).normal(size=(20, WIDTH)).astype(np.float32)
    prompted = encode_prompts(tower, read_prompts(TEMPLATES[0]), names)
    head = prompted.given_to(ZeroShotHead()).fit(images[:6], np.repeat(names, 2))
    logits = tower.logits(images, np.stack([prompted.weights[name] for name in names]))
    expected = 50 * unit(images) @ unit(tower.encode([f"a photo of {name}" for name in names])).T - 2
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4)
    assert (head.predict(images) == np.array(names)[logits.argmax(axis=1)]).all()


def test_heads_that_have_weights_keep_them_and_others_take_none(tower):
    prompted = encode_prompts(tower, read_prompts(TEMPLATES), ["cat", "dog"])
    own = TipAdapterHead(class_weights={"cat": np.ones(WIDTH), "dog": -np.ones(WIDTH)})
    assert prompted.given_to(own) is own
    head = NccHead()
    assert prompted.given_to(head) is head
    meta = MetaAdapterHead()
    assert set(prompted.given_to(meta).class_weights) == {"cat", "dog"} and meta.class_weights is None


def test_what_is_recorded_changes_with_weights_tokens_and_words(tower):
    def record(names=("cat", "dog"), prompts=TEMPLATES):
        return encode_prompts(tower, read_prompts(prompts), list(names)).record

    first = record()
    assert first == record()
    assert first.tokens_fingerprint != record(prompts=TEMPLATES[:1]).tokens_fingerprint
    with torch.no_grad():
        tower.module.weight[3] += 1
    assert first.weights_fingerprint != record().weights_fingerprint
    assert (first.logit_scale, first.logit_bias, first.num_features) == (50.0, -2.0, WIDTH)


@pytest.mark.parametrize(
    ("given", "templates", "texts"),
    [
        ("a {class}", ("a {class}",), None),
        (["a {class}"], ("a {class}",), None),
        (["a {class}", "the {class}"], ("a {class}", "the {class}"), None),
        ("a {class}.yaml", ("a {class}.yaml",), None),
        (
            {"templates": "a {class}", "classes": {0: "zero", "b": ["one", "two"]}},
            ("a {class}",),
            {"0": ("zero",), "b": ("one", "two")},
        ),
    ],
)
def test_ways_to_give_prompts(given, templates, texts):
    found = read_prompts(given)
    assert (found.templates, found.texts) == (templates, texts)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_file_of_prompts(as_text, tmp_path):
    file = tmp_path / "prompts.yaml"
    file.write_text("templates: ['a {class}']\nclasses: {TUM: a tumour}\n")
    assert read_prompts([str(file)] if as_text else file).describe() == {
        "templates": ["a {class}"],
        "classes": {"TUM": ["a tumour"]},
    }


def test_classes_called_yes_and_no_need_no_quotes(tmp_path):
    file = tmp_path / "prompts.yaml"
    file.write_text("templates: ['a {class}']\nclasses: {yes: a tumour, no: normal tissue}\n")
    assert read_prompts(file).texts_of(["no", "yes"]) == {"no": ("normal tissue",), "yes": ("a tumour",)}


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("a photo", UsageError, r"no \{class\}"),
        ([], UsageError, "need a template"),
        ({"classes": {"a": "b"}}, UsageError, "need a template"),
        (["a {class}", 3], DataError, "must be text"),
        ({"templates": "a {class}", "labels": {}}, UnknownNameError, "labels"),
        ({"templates": "a {class}", "classes": ["cat"]}, DataError, "must be label: text, found list"),
        ({"templates": "a {class}", "classes": {"a": 3}}, DataError, r"a in prompts must be text"),
        (3, DataError, "must be text"),
        ("missing.yaml", DataError, "no file of prompts at missing.yaml"),
    ],
)
def test_prompts_that_are_none(given, error, words):
    with pytest.raises(error, match=words):
        read_prompts(given)


@pytest.mark.parametrize("content", ["- a {class}", "a: [", "3"])
def test_a_file_that_holds_no_prompts(content, tmp_path):
    file = Path(tmp_path / "p.yaml")
    file.write_text(content)
    with pytest.raises(DataError, match=r"must say templates|cannot be read as YAML"):
        read_prompts(file)


@pytest.mark.parametrize(
    "texts", [{"cat": "cat"}, {"cat": "cat", "dog": ""}, {"cat": "cat", "dog": []}, {"cat": "cat", "dog": [" "]}]
)
def test_a_class_without_a_text(texts, tower):
    prompts = read_prompts({"templates": "a {class}", "classes": texts})
    with pytest.raises(DataError, match=r"no text for dog\. .* under classes:"):
        encode_prompts(tower, prompts, ["cat", "dog"])


@pytest.mark.parametrize(("texts", "quoted"), [(["cat", "cat "], "a cat"), (["zebra", "horse"], "a horse")])
def test_two_classes_with_one_text(texts, quoted, tower):
    prompts = read_prompts({"templates": "a {class}", "classes": dict(zip("xy", texts, strict=True))})
    with pytest.raises(DataError, match=f"x and y are the same text to words: .*'{quoted}.*have the same tokens"):
        encode_prompts(tower, prompts, ["x", "y"])


def test_a_prompt_that_is_too_long(tower):
    with pytest.raises(UsageError, match=r"'a .*' has 10 tokens, and the text tower of words takes 9"):
        class_weights_from_prompts(tower, ["cat", "dog"], "a photo of a photo of a photo of {class}")


def test_zero_shot_needs_no_weights_where_there_are_prompts():
    with pytest.raises(UsageError, match="--prompts"):
        choose_heads("zero_shot")
    assert list(choose_heads("zero_shot,ncc", has_prompts=True)) == ["zero_shot", "ncc"]
    assert "zero_shot" in choose_heads("all", has_prompts=True) and "zero_shot" not in heads_left_out("all", has_prompts=True)
    assert "--prompts" in heads_left_out("all")["zero_shot"]


def test_images_of_another_network_are_refused(tower):
    backbone = load_backbone(ModelSpec("r", "test_resnet", weights="random", kwargs={"num_classes": 0}), image_size=32)
    with pytest.raises(UsageError, match="width 5"):
        tower.project(np.ones((2, 5), dtype=np.float32), backbone)
    with pytest.raises(UsageError, match="lost the head"):
        replace(tower, image_projection=None).project(np.ones((2, 4), dtype=np.float32), backbone)
