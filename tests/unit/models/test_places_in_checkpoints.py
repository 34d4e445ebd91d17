"""Weights that lie under a key of a checkpoint, or among the tensors of something larger."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError, UsageError
from crossgraft.models import read_zoo
from crossgraft.models.sources.local_checkpoint import read_state_dict


@pytest.fixture
def checkpoint(tmp_path):
    """`checkpoint(content)`: a file that torch wrote."""

    def make(content):
        torch.save(content, tmp_path / "resnet18.dino.pth")
        return tmp_path / "resnet18.dino.pth"

    return make


def _network(value):
    return {"backbone.conv.weight": torch.full((2,), value), "head.weight": torch.zeros(3)}


def test_a_key_and_a_prefix(checkpoint):
    path = checkpoint({"epoch": 3, "teacher": _network(1.0), "student": {"ema": _network(2.0)}})
    assert sorted(read_state_dict(path, key="teacher")) == ["backbone.conv.weight", "head.weight"]
    taken = read_state_dict(path, key="student.ema", prefix="backbone.")
    assert list(taken) == ["conv.weight"] and taken["conv.weight"].tolist() == [2.0, 2.0]


def test_what_there_is_is_listed(checkpoint):
    path = checkpoint({"epoch": 3, "teacher": _network(1.0), "student": _network(2.0)})
    with pytest.raises(DataError, match=r"Its keys: epoch, teacher \(2 tensors\), student \(2 tensors\).*--weights-key"):
        read_state_dict(path)
    with pytest.raises(UsageError, match=r"has no key teachr .*Its keys: epoch, teacher, student"):
        read_state_dict(path, key="teachr")
    with pytest.raises(UsageError, match=r"no state dict|No tensor of .* is called body….*begin with: backbone\., head\."):
        read_state_dict(path, key="teacher", prefix="body")
    with pytest.raises(DataError, match="no state dict"):
        read_state_dict(path, key="epoch")


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_depth(tmp_path_factory, keys):
    content = _network(1.0)
    for key in reversed(keys):
        content = {key: content}
    path = tmp_path_factory.mktemp("deep") / "x.pth"
    torch.save(content, path)
    assert sorted(read_state_dict(path, key=".".join(keys))) == ["backbone.conv.weight", "head.weight"]


def test_a_zoo_takes_them_from_the_command_line_and_from_its_entries(checkpoint, tmp_path):
    path = checkpoint({"teacher": _network(1.0)})
    (spec,) = read_zoo([str(path)], weights_key="teacher", weights_prefix="backbone.")
    assert (spec.weights_key, spec.weights_prefix) == ("teacher", "backbone.")
    (tmp_path / "zoo.yaml").write_text(f"- name: a\n  weights: {path.name}\n  source: resnet18\n  weights_key: teacher\n")
    (spec,) = read_zoo(tmp_path / "zoo.yaml", weights_key="student")
    assert spec.weights_key == "teacher" and spec.describe()["weights_key"] == "teacher"
    with pytest.raises(UsageError, match="--weights-key and --weights-prefix name a place inside a checkpoint"):
        read_zoo(["torchvision:resnet18"], weights_key="teacher")
