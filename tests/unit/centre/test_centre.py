"""Several networks around the mean of their weights, against a literal version; what is refused."""

import json
import math

import pytest
import torch
from torch import nn

import crossgraft
from crossgraft.centre.record import CentreRecord
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.backbone import Backbone
from crossgraft.types import Preprocessing


def network(seed, name="tiny", width=4, classes=5):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        module.add_module("fc", nn.Linear(width, classes))
    module[1].running_mean += seed
    return Backbone(module, name=name, architecture="tiny", source="factory", preprocessing=Preprocessing(8, 8), family="tiny")


def body(backbone):
    return torch.cat(
        [value.detach().double().flatten() for name, value in backbone.module.named_parameters() if "fc" not in name]
    )


def test_distances_are_those_of_the_table_counted_one_by_one(tmp_path):
    networks, start = [network(seed) for seed in range(1, 6)], network(0)
    found = crossgraft.compare_centre(networks, before=start, device="cpu", out=tmp_path / "centre")
    bodies = [body(each) for each in networks]
    centre = sum(bodies) / 5
    by_hand = [math.sqrt(sum(float(one - other) ** 2 for one, other in zip(each, centre, strict=True))) for each in bodies]
    rows = found.record.networks
    assert [row.label for row in rows] == [f"network {place}" for place in range(1, 6)]
    assert [row.to_centre.l2 for row in rows] == pytest.approx(by_hand)
    assert [row.to_start.l2 for row in rows] == pytest.approx([float((each - body(start)).norm()) for each in bodies])
    assert found.record.centre_to_start.l2 == pytest.approx(float((centre - body(start)).norm()))
    assert found.record.num_weights == len(centre) == 3 * 4 * 9 + 4 + 2 * 4  # neither the head nor statistics
    assert found.primary["value"] == pytest.approx(sum(by_hand) / 5)
    assert "5 networks lie" in found.summary() and "The mean itself lies" in found.summary()
    assert list(found.to_frame()["to_centre_l2"]) == [row.to_centre.l2 for row in rows]
    written = (tmp_path / "centre" / "report.json").read_bytes()
    assert CentreRecord.model_validate_json(written) == found.record
    assert json.loads((tmp_path / "centre" / "run.json").read_bytes())["config"]["geometry"] == "centre"
    html = (tmp_path / "centre" / "report.html").read_text("utf-8")
    assert "Around the centre" in html and "To the start" in html


@pytest.mark.parametrize(
    ("networks", "options", "said"),
    [
        ([network(1)], {}, "at least 2 networks; there is one"),
        ([], {}, "there are none"),
        ([network(1), network(1)], {}, "network 1 and network 2 have the same weights"),
        ([network(1), network(2, width=6)], {}, "different architectures"),
        ([network(1), network(2)], {"before": network(3, width=6)}, "different architectures"),
        ([network(1), network(2)], {"geometry": "sharpness"}, "compare_models"),
        ([network(1), network(2)], {"geometry": "centre,sharpness"}, "Ask for one after the other"),
    ],
)
def test_what_has_no_centre_is_refused(networks, options, said):
    with pytest.raises(UsageError, match=said):
        crossgraft.compare_centre(networks, device="cpu", **options)


def test_two_networks_have_their_centre_in_the_middle():
    one, other = crossgraft.compare_centre([network(1), network(2, classes=3)], device="cpu").record.networks
    assert (
        one.to_centre.l2
        == pytest.approx(other.to_centre.l2)
        == pytest.approx(float((body(network(1)) - body(network(2))).norm() / 2))
    )


def test_two_models_are_compared_by_another_function():
    with pytest.raises(UsageError, match=r"crossgraft\.compare_centre"):
        crossgraft.compare_models(network(1), network(2), data=None, geometry="centre")
    with pytest.raises(UnknownNameError, match="linear_probe"):
        crossgraft.compare_centre([network(1), network(2)], linear_probe=True)
