"""What the demo shows of its selection: the model that was taken within a budget, and what the best of all would have given."""

from __future__ import annotations

from crossgraft.demo.record import DemoRecord, DemoSelectionRecord
from crossgraft.report.blocks import Block, Code, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.select.caveats import nothing_known
from crossgraft.select.page import val_section
from crossgraft.select.words import cost_in_words, selected_in_words
from crossgraft.words.formatting import NumberFormat, counted

_ACCURACY = NumberFormat(decimals=3)


def selected_section(source: Source[DemoRecord]) -> Section | None:
    """What was trained for a quarter of the time, what was handed over, and its regret; None in older records."""
    found = source.record.selected
    if found is None:
        return None
    within = source.showing(found.selection)
    blocks: list[Block] = [
        Paragraph(
            "To fine-tune every model tells which is best, and costs most. Here a quarter of that time was given: models are "
            "trained in the order of what is known of them elsewhere, and the best on val is handed over."
        ),
        Paragraph(selected_in_words(found.selection)),
        Paragraph(cost_in_words(found.selection)),
        *([] if (caveat := nothing_known(within)) is None else [Paragraph(caveat.text)]),
        Paragraph(_regret(found)),
        *([] if (val := val_section(within)) is None else val.blocks),
        Paragraph(
            f"Why each of the others was not taken: {found.select_folder}/report.html in the run directory of this demo.",
            tone="quiet",
        ),
        Paragraph("The same by hand:" if source.out else "The same by hand, typed in the run directory of this demo:"),
        Code(found.command(source.out or ".")),
    ]
    return Section(name="selected", title="Select within a budget", part="evidence", blocks=blocks)


def _regret(found: DemoSelectionRecord) -> str:
    """What the check that fine-tuned all models says of the choice."""
    number = counted(len(found.selection.candidates), "model")
    reached = (
        f"Was it a good choice? In the check above all {number} were fine-tuned: {found.selection.selected} reached "
    )
    if found.best == found.selection.selected:
        return f"{reached}{_ACCURACY(found.accuracy)} on the unseen writers, the best of all."
    difference = _ACCURACY(found.best_accuracy - found.accuracy)
    interval = f"[{_ACCURACY(found.regret_low)}, {_ACCURACY(found.regret_high)}]"
    told = "they cannot be told apart" if found.regret_low <= 0 <= found.regret_high else "the best is better"
    return (
        f"{reached}{_ACCURACY(found.accuracy)} on the unseen writers, and {found.best}, the best, "
        f"{_ACCURACY(found.best_accuracy)}. The regret is {difference}, 95 % interval {interval} over writers: {told}."
    )
