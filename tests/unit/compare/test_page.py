"""Sections of two compared models: what is left out, absent or weak is said, and names stay text."""

from dataclasses import replace

import pytest

from crossgraft.compare.page import MODEL_COMPARISON_CAVEATS, after_comparison, probed_before, shared_mistakes_section
from crossgraft.compare.page_layers import (
    forgotten_section,
    layer_cca_section,
    layer_pairs_section,
    layer_text_section,
    weights_section,
)
from crossgraft.compare.record import LayerCca, ModelGeometry, SharedMistakes, WeightsApart
from crossgraft.compare.words import answer_in_words
from crossgraft.geometry.record import ForgettingRecord, ProbeRow, WeightDistance
from crossgraft.records.base import LooksRecord
from crossgraft.report.blocks import Figure, Items, Paragraph
from crossgraft.report.tables import Table
from support.model_comparison_records import compared as model_called
from support.model_comparison_records import grid, model_comparison_record

EVIL = "<script>stem"


def of_kind(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def cells(table):
    return [[cell.text for cell in row] for row in table.rows]


@pytest.fixture
def compared(source_of):
    """The page of a comparison whose first pair is changed."""

    def make(pair=None, dataset=None, **changed):
        record = model_comparison_record(dataset)
        pairs = [record.pairs[0].model_copy(update=pair or {})]
        return source_of(model_comparison_record(dataset, **({"pairs": pairs} | changed)))

    return make


def test_a_layer_without_a_value_is_named_and_the_floor_stands_beside_its_own_layer(compared):
    left = grid([[0.9], [0.3]]).model_copy(update={"columns": ["stem"], "left_out_columns": {EVIL: "it is constant"}})
    source = compared({"cka": left})
    section = layer_pairs_section(source)
    assert of_kind(section, Items)[0].items == [f"B: the layer {EVIL} is left out, because it is constant."]
    drawn = [str(drawing) for figure in of_kind(section, Figure) for drawing in figure.drawings]
    assert len(drawn) == 2 and not any("<script>" in each for each in drawn)
    (table,) = layer_text_section(source).blocks
    assert cells(table) == [["stem", "0.900", "0.800", "stem", "0.900"], ["block", "—", "—", "stem", "0.300"]]
    refused = layer_pairs_section(compared({"cka": None, "cka_reason": "no images"}))
    assert of_kind(refused, Paragraph)[0].text == "A with B: no images"


def test_cca_says_how_many_positions_it_reached_and_why_a_layer_has_none(compared):
    layers = [
        LayerCca(
            layer="stem", other_layer="stem", value=0.5, spread=0.01, untrained=0.4, positions=624,
            positions_asked_for=20_000, channels=16,
        ),
        LayerCca(
            layer="block", other_layer="top", value=None, spread=None, untrained=None, positions=0,
            positions_asked_for=20_000, channels=0, reason="maps of 2 × 2 and 4 × 4 have no positions in common",
        ),
    ]  # fmt: skip
    section = layer_cca_section(compared({"cca": layers, "cca_reason": None}))
    (table,) = of_kind(section, Table)
    assert cells(table)[0][:3] == ["stem", "0.500", "0.010"]
    assert cells(table)[0][5].replace("\N{THIN SPACE}", "") == "624" and cells(table)[1][0] == "block | top"
    assert table.notes == ["block: maps of 2 × 2 and 4 × 4 have no positions in common."]
    assert layer_cca_section(compared()) is None  # the reason alone is no section


MISTAKES = SharedMistakes(
    num_images=40, value=0.8, low=0.7, high=0.9, accuracy=0.75, other_accuracy=0.7, independent=0.6,
    independent_low=0.5, independent_high=0.7, p_value=0.001, kappa=0.5, agreement=0.8, by_probe=True,
)  # fmt: skip


def test_mistakes_by_a_probe_are_marked(compared):
    section = shared_mistakes_section(compared({"mistakes": MISTAKES}))
    (table,) = of_kind(section, Table)
    assert cells(table)[0][:3] == ["A with B*", "0.750, 0.700", "0.800"]
    assert table.notes[-1].startswith("*: a model without a head")
    own = shared_mistakes_section(compared({"mistakes": MISTAKES.model_copy(update={"by_probe": False})}))
    assert cells(of_kind(own, Table)[0])[0][0] == "A with B" and len(of_kind(own, Table)[0].notes) == 2
    assert shared_mistakes_section(compared()) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "on 0.800 (95 % interval 0.700 to 0.900), more often than with mistakes that have nothing to do with each other"),
        (
            {"low": 0.58},
            "on 0.800 (95 % interval 0.580 to 0.900), not told from mistakes that have nothing to do",
        ),  # of few patients
        ({"independent_high": 0.81}, "not told from mistakes"),
        ({"low": None, "high": None}, "on 0.800 (no interval), not told from mistakes"),
        ({"value": 0.4, "low": 0.3, "high": 0.5}, "less often than with mistakes"),
        ({"value": 0.4, "low": 0.3, "high": 0.61}, "not told from mistakes"),
        ({"value": 0.4, "low": None, "high": None}, "not told from mistakes"),
    ],
)
def test_shared_mistakes_are_claimed_where_patients_tell_them(compared, changed, said):
    record = compared({"of": "models", "mistakes": MISTAKES.model_copy(update=changed)}).record
    assert said in answer_in_words(record).replace("\N{NO-BREAK SPACE}", " ")


def test_weights_without_a_length_have_no_relative_distance(compared):
    rows = [
        WeightsApart(first="A", second="B", distance=WeightDistance(l2=0.5, rms=0.001, relative=each), num_weights=1234)
        for each in (0.25, None)
    ]
    (table,) = weights_section(compared(), rows).blocks
    assert [row[4] for row in cells(table)] == ["0.250", "—"]


def test_the_answer_names_both_models(compared):
    record = compared({"of": "models", "mistakes": MISTAKES}).record
    first, second = (record.model(label).name for label in ("A", "B"))
    assert answer_in_words(record).startswith(f"A ({first}) is right on 0.750 of 40 images, B ({second}) on 0.700. ")


def test_looks_at_the_images_of_probes_are_said_where_there_were_others(compared):
    probes = [
        ProbeRow(network=name, accuracy=0.5, low=0.4, high=0.6, difference=gap, difference_low=gap, difference_high=gap)
        for name, gap in (("A", None), ("B", -0.1))
    ]
    forgotten = ForgettingRecord(data=EVIL, reference="A", num_train=10, num_test=10, num_groups=None, majority=0.5, rows=probes)
    geometry = ModelGeometry(asked=[], forgetting=forgotten)
    looks = LooksRecord(number=3, by_command={"compare": 3}, optimism=None)
    source = compared(geometry=geometry, probe_looks=looks)
    said = probed_before(source).text
    assert said.startswith(f"Linear probes on {EVIL}: this is the 3rd look at these test images (3 × compare)")
    assert probed_before in MODEL_COMPARISON_CAVEATS
    assert EVIL not in "".join(str(drawing) for each in of_kind(forgotten_section(source), Figure) for drawing in each.drawings)
    assert probed_before(compared(geometry=geometry, probe_looks=looks.model_copy(update={"number": 1}))) is None
    assert probed_before(compared()) is None and forgotten_section(compared()) is None


TUNED = {"kind": "fine-tuned", "started_with": {"--model": "zoo.yaml:a", "--weights-dir": "weights"}}
OTHER = {"kind": "fine-tuned", "started_with": {"--model": "zoo.yaml:b"}}


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        (TUNED, {}, "crossgraft compare zoo.yaml:a runs/a --data images --weights-dir weights"),
        ({}, OTHER, "crossgraft compare zoo.yaml:b runs/b --data images"),
        (TUNED, OTHER, "crossgraft compare runs/a runs/b --data images --before zoo.yaml:a,zoo.yaml:b --weights-dir weights"),
        (TUNED, TUNED, "crossgraft compare runs/a runs/b --data images --before zoo.yaml:a --weights-dir weights"),
        ({"kind": "fine-tuned"}, {}, "crossgraft compare PRETRAINED_A runs/a --data images"),
    ],
)
def test_the_next_command_names_what_a_model_was_fine_tuned_from(compared, examples, first, second, line):
    models = [model_called("A", "narrow", **first), model_called("B", "wide", **second)]
    found = compared(models=models, dataset=examples.ranking_record().dataset)
    source = replace(found, command_line="crossgraft compare runs/a runs/b --data images --out run")
    assert after_comparison(source).line == line


def test_after_two_pretrained_networks_comes_a_ranking(compared, examples):
    found = compared(dataset=examples.ranking_record().dataset)
    line = "crossgraft compare wide nets/narrow.pth --data images --weights-dir weights --out run"
    following = after_comparison(replace(found, command_line=line))
    assert following.line == "crossgraft rank images --models wide,nets/narrow.pth --weights-dir weights"
    assert after_comparison(compared(dataset=None)) is None  # features on disk


def test_after_a_change_come_the_networks_between(compared, examples):
    found = compared(dataset=examples.ranking_record().dataset)
    models = [model_called("A", "wide"), model_called("B", "wide", **TUNED)]
    pairs = [found.record.pairs[0].model_copy(update={"of": "change"})]
    source = replace(found, record=found.record.model_copy(update={"models": models, "pairs": pairs}))
    line = "crossgraft compare wide runs/a --data images --code nets.py --out run"
    following = after_comparison(replace(source, command_line=line))
    assert following.line == "crossgraft interpolate runs/a images --model wide --code nets.py"
