"""What the report of a comparison says about the features of a layer."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

from crossgraft.report.blocks import Figure, Items
from crossgraft.report.plots.layers import MOST_NAMED_CLASSES
from crossgraft.variants.page import layer_section
from crossgraft.variants.record import LayerPcaPanel, LayerPcaRecord
from support.comparison_records import EVIL, comparison_record

DRAWN = 24


def pca(num_panels=2, num_classes=2, **changes):
    places = np.random.default_rng(0).normal(size=(num_panels, DRAWN, 2)).tolist()
    panels = [LayerPcaPanel(variant=f"way {n}", points=each, shares=(0.5, 0.25)) for n, each in enumerate(places)]
    known = {
        "layer": "layer3.2", "seed": 4, "num_images": DRAWN, "classes": [place % num_classes for place in range(DRAWN)],
        "class_names": [f"kind {place}" for place in range(num_classes)], "panels": panels,
    }  # fmt: skip
    return LayerPcaRecord(**{**known, **changes})


def section_of(source_of, found):
    return layer_section(source_of(comparison_record().model_copy(update={"layer_pca": found})))


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_nothing_is_said_where_no_layer_was_asked_for(source_of):
    assert section_of(source_of, None) is None


@pytest.mark.parametrize("number", [1, 2, 4])
def test_each_variant_is_a_panel_with_its_own_shares(source_of, number):
    (figure,) = section_of(source_of, pca(number)).blocks
    assert isinstance(figure, Figure)
    for svg in (*figure.drawings, *figure.narrow):
        said = texts(svg)
        assert [text for text in said if text.startswith("way")] == [f"way {place}" for place in range(number)]
        assert said.count("PC 1 (50\N{NO-BREAK SPACE}% of the variance)") == said.count("PC 2 (25\N{NO-BREAK SPACE}%)") == number
        assert {"kind 0", "kind 1"} <= set(said)
    assert "layer layer3.2" in figure.caption and "seed 4" in figure.caption
    assert "not places, directions and units" in figure.caption and "are drawn" not in figure.caption


def test_some_of_many_images_and_the_names_of_few_classes_are_shown(source_of):
    (figure,) = section_of(source_of, pca(num_classes=MOST_NAMED_CLASSES + 1, num_images=700)).blocks
    assert "700 test images, of which 24 are drawn" in figure.caption
    assert "The 13 classes are too many to be named" in figure.caption
    assert not any(text.startswith("kind") for text in texts(figure.drawings[0]))


def test_a_variant_without_components_has_a_reason(source_of):
    broken = LayerPcaPanel(variant=EVIL, reason="its features are not finite")
    _, reasons = section_of(source_of, pca(panels=[*pca().panels, broken])).blocks
    assert isinstance(reasons, Items) and reasons.items == [f"{EVIL}: its features are not finite."]
    (alone,) = section_of(source_of, pca(panels=[broken])).blocks
    assert isinstance(alone, Items)


def test_names_are_escaped(source_of):
    found = pca(class_names=[EVIL, "b"])
    panels = [each.model_copy(update={"variant": EVIL}) for each in found.panels]
    (figure,) = section_of(source_of, found.model_copy(update={"panels": panels})).blocks
    assert "<script" not in figure.drawings[0]


def test_points_and_images_are_equally_many():
    with pytest.raises(ValidationError, match="23 images"):
        pca(classes=[0] * 23)
    with pytest.raises(ValidationError, match="has no name"):
        pca(classes=[2] * DRAWN)
