"""`--format peft`: adapters alone, loaded again by PEFT where it is installed."""

import importlib.util
import json

import pytest

from crossgraft import export_model
from crossgraft.errors import ExportError, UsageError
from crossgraft.export import formats
from crossgraft.tune.record import BatchNormRecord
from support.exported import own_classifier, saved
from support.peft_networks import adapted
from support.small_classifiers import SmallCnn

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("by_peft", [True, False])
def test_adapters_alone_give_the_outputs_of_the_model(by_peft, tmp_path, monkeypatch):
    if by_peft:
        pytest.importorskip("peft")
    else:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exported = export_model(saved(adapted(SmallCnn(), ["block"])), format="peft", out=tmp_path / "out")
    record = exported.record
    assert {"adapter_config.json", "adapter_model.safetensors", "README.md", "description.json"} <= {f.name for f in record.files}
    assert record.agreement.checked_with.startswith("PEFT" if by_peft else "crossgraft")
    assert record.agreement.largest_logit_difference <= 1e-6
    assert not any("part of the exported weights" in note for note in record.notes)
    assert json.loads((tmp_path / "out" / "adapter_config.json").read_text())["modules_to_save"] == ["fc"]


def test_files_that_give_something_else_are_not_kept(tmp_path, monkeypatch):
    def write_doubled(classifier, folder):
        classifier = adapted(SmallCnn(), ["block"], alpha=4.0)
        return original(classifier, folder)

    original = formats.write_peft_adapter
    monkeypatch.setattr(formats, "write_peft_adapter", write_doubled)
    with pytest.raises(ExportError, match="gives other logits"):
        export_model(saved(adapted(SmallCnn(), ["block"])), format="peft", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_model_without_lora_has_nothing_for_peft(tmp_path):
    with pytest.raises(UsageError, match="no LoRA adapters"):
        export_model(saved(own_classifier()), format="peft", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_adapter_that_belongs_to_other_statistics_is_not_handed_on_alone(tmp_path):
    decided = BatchNormRecord(mode="adapt", num_layers=2)
    with pytest.raises(UsageError, match=r"2 BatchNorm layers with statistics .*Use --format safetensors"):
        export_model(saved(adapted(SmallCnn(), ["block"]), batch_norm=decided), format="peft", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())
    nothing = BatchNormRecord(mode="adapt", num_layers=0)  # the network has none
    export_model(saved(adapted(SmallCnn(), ["block"]), batch_norm=nothing), format="peft", out=tmp_path / "out")
