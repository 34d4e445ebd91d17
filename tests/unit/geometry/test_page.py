"""Sections of geometry: the sentence follows the numbers, figures draw what was measured, names stay text."""

import re

import pytest

from crossgraft.geometry.page import (
    attention_section,
    feature_map_section,
    filters_section,
    forgetting_section,
    path_section,
    sharpness_section,
    tsne_section,
)
from crossgraft.geometry.record import (
    AttentionRecord,
    AttentionRow,
    FeatureMapRecord,
    FilterRow,
    FiltersRecord,
    ForgettingRecord,
    InterpolationPathRecord,
    MappedNetworkRow,
    PathPointRow,
    ProbeRow,
    SharpnessRecord,
    SharpnessRow,
    TsneRecord,
    TsneRow,
)
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Figure, Gallery, Items, Paragraph
from crossgraft.report.source import Source
from crossgraft.report.tables import Table

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def of_kind(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def sharp(*values):
    rows = [
        SharpnessRow(network=f"<b>{name}", loss=0.5, one_step=value, many_steps=value * 1.2, per_batch=None, first_order=value)
        for name, value in zip("abc", values, strict=False)
    ]
    return SharpnessRecord(rho=0.01, steps=10, batch_size=64, num_images=156, sums_labels=False, rows=rows)


def test_the_flattest_network_is_named_and_names_are_text():
    section = sharpness_section(Source(sharp(0.02, 0.01), prefix="one-"))
    assert of_kind(section, Paragraph)[0].text.startswith("<b>b is the flattest: its loss rises by 0.012")
    drawing = str(of_kind(section, Figure)[0].drawings[0])
    assert "<b>" not in drawing and "one-sharpness" in drawing
    assert [column.title for column in of_kind(section, Table)[0].columns] == [
        "Network", "Loss", "One step", "10 steps", "ρ · gradient",
    ]  # fmt: skip
    unlike = sharp(0.02, 0.01).model_copy(update={"is_comparable": False})
    assert of_kind(sharpness_section(Source(unlike)), Paragraph) == []
    assert "The loss of <b>a rises" in of_kind(sharpness_section(Source(sharp(0.02))), Paragraph)[0].text


def path(ckas=(1.0, 0.9, 0.8), losses=(0.9, 0.6, 0.4), **changes):
    points = [
        PathPointRow(alpha=alpha, loss=loss, cka=cka, cka_debiased=cka)
        for alpha, loss, cka in zip((0.0, 0.5, 1.0), losses, ckas, strict=True)
    ]
    fields = {"start": "LINEAR", "end": "FULL", "num_images": 9, "batch_norm": "estimate", "num_batch_norms": 0}
    return InterpolationPathRecord(**(fields | changes), points=points)


@pytest.mark.parametrize(
    ("record", "num_between", "num_lines"),
    [
        (path(), 1, 2),
        (path(losses=(0.9, 1.2, 0.4)), 0, 2),
        (path(ckas=(1.0, 0.9, 0.5)), 1, 1),
        (path(num_batch_norms=3), 1, 0),
        (path(ckas=(1.0, None, 0.5)), 0, 0),
    ],
)
def test_only_what_may_be_joined_is_joined_and_proposition_8_is_counted(record, num_between, num_lines):
    assert sum(record.between.values()) == num_between
    assert sum(record.is_joined(place) for place in (0, 1)) == num_lines
    section = path_section(Source(record))
    assert f"Of 1 network between LINEAR and FULL, {num_between} ha" in of_kind(section, Paragraph)[0].text
    figure = of_kind(section, Figure)[0]
    assert ("nothing is known of what lies between" in figure.caption) == (num_lines < 2)
    strokes = re.findall(r"stroke: #(?:d55e00|0072b2|009e73)[^\"]*stroke-width: 1.6", str(figure.drawings[0]))
    assert len(strokes) == 3 * num_lines


def test_a_map_has_a_panel_per_network_but_the_reference_and_says_why_one_has_no_density():
    common = {"points": [(0.0, 0.0), (1.0, 1.0)], "distance": 1.0, "relative_distance": 0.5, "bhattacharyya": None}
    density = [[0.0, 0.2], [0.5, 1.0]]
    networks = [
        MappedNetworkRow(network="before", density=density, overlap=1.0, reason=None, **common),
        MappedNetworkRow(network="after", density=density, overlap=0.25, reason=None, **common),
        MappedNetworkRow(network="flat", density=None, overlap=None, reason="flat: the points lie on a line", **common),
    ]
    record = FeatureMapRecord(
        reference="before",
        num_images=2,
        images="test images",
        shares=(0.6, 0.2),
        x_range=(0, 1),
        y_range=(0, 1),
        networks=networks,
    )
    section = feature_map_section(Source(record))
    drawing = str(of_kind(section, Figure)[0].drawings[0])
    assert "overlap 0.25" in drawing and "no density" in drawing and ">before<" not in drawing
    assert of_kind(section, Items)[0].items == ["flat: the points lie on a line."]
    rows = [
        TsneRow(network="a", points=[(0.0, 1.0), (2.0, 3.0)], trustworthiness=0.9, gap=0.3, drawn_gap=0.6, reason=None),
        TsneRow(network="b", points=[], trustworthiness=None, gap=None, drawn_gap=None, reason="b gives the same features"),
    ]
    tsne = tsne_section(Source(TsneRecord(class_name="benign", num_images=2, perplexity=13, seed=0, networks=rows)))
    assert "gap 0.30, drawn 0.60" in str(of_kind(tsne, Figure)[0].drawings[0])
    assert of_kind(tsne, Items)[0].items == ["b gives the same features."]


def probe(name, difference=None, half=0.05):
    ends = (None, None) if difference is None else (difference - half, difference + half)
    return ProbeRow(
        network=name, accuracy=0.7, low=0.6, high=0.8, difference=difference, difference_low=ends[0], difference_high=ends[1]
    )


def test_what_was_forgotten_is_said_only_where_the_interval_says_so():
    def said(*rows):
        record = ForgettingRecord(
            data="CIFAR",
            reference="before",
            num_train=10,
            num_test=20,
            num_groups=None,
            majority=0.1,
            rows=[probe("before"), *rows],
        )
        return of_kind(forgetting_section(Source(record)), Paragraph)[0].text

    assert said(probe("full", -0.2), probe("repsim", -0.01)) == "full tells less of CIFAR than before."
    assert said(probe("full", -0.01)) == "No body tells clearly less of CIFAR than before."
    assert "; new tells more of it." in said(probe("full", -0.2), probe("new", 0.2))


def test_images_stand_over_maps_only_where_the_page_has_them_and_small_filters_say_why_not():
    rows = [
        AttentionRow(network="before", attention=[[[1.0, 0.1]]], overlap=None, overlap_low=None, overlap_high=None),
        AttentionRow(
            network="after", attention=[[[0.1, 1.0]]], overlap=0.3, overlap_low=0.2, overlap_high=0.4, drawn_overlaps=[0.0]
        ),
    ]
    record = AttentionRecord(
        reference="before", images="test images", layer="blocks.2.attn", asked="class token", is_rollout=False, top_mass=0.2,
        num_images=5, drawn=[6], networks=rows,
    )  # fmt: skip
    section = attention_section(Source(record))
    assert not of_kind(section, Gallery) and "overlap 0.00" in str(of_kind(section, Figure)[0].drawings[0])
    bare = rows[1].model_copy(update={"overlap_low": None, "no_interval_reason": "all values are equal"})
    said = attention_section(Source(record.model_copy(update={"networks": [rows[0], bare]})))
    assert of_kind(said, Table)[0].notes[-1] == "No interval: all values are equal."
    with_image = attention_section(
        Source(record, thumbnails=(Thumbnail(row=7, png_base64=PIXEL), Thumbnail(row=6, png_base64=PIXEL)))
    )
    assert list(of_kind(with_image, Gallery)[0].images) == ["Image 7"]
    small = FilterRow(
        network="net", layer="stem", num_filters=1, height_pixels=3, width_pixels=3, patterns=[[[1.0, -1.0]]], r2=[],
        gabor_likeness=None, random_likeness=None, num_flat=0, reason="the filters of stem have 3×3 pixels",
    )  # fmt: skip
    filters = filters_section(Source(FiltersRecord(networks=[small])))
    assert of_kind(filters, Items)[0].items == ["net: the filters of stem have 3×3 pixels."]
    assert of_kind(filters, Table)[0].rows[0][3].text == "not assessable"
