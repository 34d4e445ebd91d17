"""What a layer makes of the test images in each variant of a comparison."""

from __future__ import annotations

from crossgraft.report.blocks import Block, Figure, Items, Section
from crossgraft.report.plots.layer_pca import MOST_NAMED_CLASSES, Panel, layer_pca_figure
from crossgraft.report.source import Source
from crossgraft.variants.layer_pca_record import LayerPcaRecord
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.words.formatting import counted


def layer_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """One panel per variant, and the reasons where there is none; None where no layer was asked for."""
    found = source.record.layer_pca
    if found is None:
        return None
    panels = [Panel(each.variant, each.points, each.shares) for each in found.panels if each.shares is not None]
    blocks: list[Block] = []
    if panels:
        wide, narrow = (
            layer_pca_figure(
                panels,
                found.classes,
                found.class_names,
                identifier=f"{source.prefix}layer{'' if is_wide else '-narrow'}",
                is_wide=is_wide,
            )
            for is_wide in (True, False)
        )
        blocks.append(Figure([wide], caption=_caption(found), narrow=[narrow]))
    reasons = [f"{each.variant}: {each.reason}." for each in found.panels if each.reason is not None]
    if reasons:
        blocks.append(Items(reasons))
    return Section(name="layer", title="Features of a layer", part="evidence", blocks=blocks)


def _caption(found: LayerPcaRecord) -> str:
    drawn = len(found.classes)
    some = f", of which {drawn} are drawn" if drawn < found.num_images else ""
    unnamed = (
        f" The {len(set(found.classes))} classes are too many to be named."
        if len(set(found.classes)) > MOST_NAMED_CLASSES
        else ""
    )
    return (
        f"Output of the layer {found.layer}, averaged over positions, for {counted(found.num_images, 'test image')}{some}, with "
        f"seed {found.seed}: a dot is an image, its mark the true class.{unnamed} Each network has principal components of its "
        "own, with the share of its variance along each of them, so shapes and shares can be compared between panels, but not "
        "places, directions and units. Signs are those nearest to the first panel. Two components are a view of many; classes "
        "that overlap here may be apart in others."
    )
