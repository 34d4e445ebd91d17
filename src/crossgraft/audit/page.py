"""The report of an audit: which model leans on what, and how that was found."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.audit.checklist_answers import AUDIT_ANSWERS
from crossgraft.audit.letters import are_too_small, large_enough
from crossgraft.audit.page_frequency import frequency_section
from crossgraft.audit.page_numbers import (
    differences_section,
    ends_cell,
    groups_section,
    has_several_models,
    metric_cell,
    metric_column,
    model_column,
    named_entry,
    numbers_section,
    patients_cell,
    reach_blocks,
    with_mitigation,
)
from crossgraft.audit.plots import OodCurve, RelianceCurve, ood_figure, reliance_figure
from crossgraft.audit.record import AGAINST, REMARK, AuditEntry, AuditMetric, AuditRecord
from crossgraft.audit.words import OUTCOMES, answer_in_words, headline
from crossgraft.data.page import data_facts, data_gallery, unreadable_files
from crossgraft.edit.words import LEAST_RMS, little_changed
from crossgraft.metrics.page import reasons_of_no_interval
from crossgraft.metrics.words import looks_in_words
from crossgraft.models.on_this_machine import new_folder
from crossgraft.options.command import Flag
from crossgraft.report.blocks import Block, Checks, Facts, Figure, Heading, Items, Section
from crossgraft.report.checklists_of_runs import checklists_section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, number, table_of, whole, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    unsound_data,
    verdict_section,
    warned_of_data,
)
from crossgraft.words.formatting import NumberFormat, counted, joined, percent, small_percent

_QUICK_ALONE = ("--mitigate",)
_ALL = "Measured on all images"


def nothing_assessable(source: Source[AuditRecord]) -> Caveat | None:
    """Silence is no pass."""
    blind = [entry for entry in source.record.entries if not entry.is_assessable and entry.mitigation == "erm"]
    if not blind:
        return None
    which = joined(list(dict.fromkeys(entry.confounder for entry in blind)))
    return Caveat(f"That is no pass: nothing is known about {which}.", Gravity.EMPTY)


def may_have_seen(source: Source[AuditRecord]) -> Caveat | None:
    """Images of a trained model, of which nobody knows whether it learned from them."""
    if source.record.mode != "trained" or not any(note.startswith(_ALL) for note in source.record.notes):
        return None
    return Caveat("The model may have learned from these images. Give images that it has not seen.", Gravity.WRONG)


def looked_before(source: Source[AuditRecord]) -> Caveat | None:
    """A choice among models by these images."""
    text = looks_in_words(source.record.looks, "auc")
    return None if text is None else Caveat(text, Gravity.FLATTERED)


def lost_in_rounding(source: Source[AuditRecord]) -> Caveat | None:
    """Artefacts that images of 8 bits hardly show."""
    record = source.record
    lost = [row.confounder for row in record.confounders if row.rms is not None and row.rms < LEAST_RMS]
    text = little_changed(lost) if record.strength else None
    return None if text is None else Caveat(text, Gravity.EMPTY)


def may_be_clinical(source: Source[AuditRecord]) -> Caveat | None:
    """An attribute may be a cause."""
    named = [row.confounder for row in source.record.confounders if row.scope == "attribute"]
    if not any(entry.outcome == "relies" and entry.confounder in named for entry in source.record.entries):
        return None
    return Caveat(REMARK, Gravity.HARM)


def without_groups(source: Source[AuditRecord]) -> Caveat | None:
    """Images of one patient count as independent."""
    if source.record.dataset.num_groups is not None:
        return None
    return Caveat("Without a column of patients, intervals take images as independent: --group-column.", Gravity.UNCHECKED)


def _seconds_taken(source: Source[AuditRecord]) -> float | None:
    """What the same audit will take again; None in a terminal, and where no stage was timed."""
    return sum(stage.seconds for stage in source.run.stages) or None if source.run else None


def after_audit(source: Source[AuditRecord]) -> Following:
    """To see the artefact, larger or in larger images, or to look deeper; never again what does not fit into these images."""
    record = source.record
    unseen = [entry for entry in record.entries if entry.outcome == "undetectable"]
    larger = next((name for entry in unseen if (name := large_enough(entry.confounder, entry.reason)) is not None), None)
    if larger is not None:
        line = source.typed.again(("--confounder", larger))
        return Following(line, "to try it with letters large enough for the network to see", _seconds_taken(source))
    side = max((entry.larger_image_size or 0 for entry in unseen), default=0)
    if side:
        line = source.typed.again(("--image-size", str(side)))
        return Following(line, "to look at larger images, which more of the artefact reaches")
    data = source.typed.value("--data") or "DATA"
    fitting = Following(
        source.typed.then("list", "confounders", flags=[("--data", data)]), "to see which artefacts fit into these images"
    )
    if unseen and all(are_too_small(entry.reason) for entry in unseen):
        return fitting
    if record.mode == "quick" and any(entry.outcome in ("undetectable", "undecided") for entry in record.entries):
        line = source.typed.again(("--mode", "full"), without=_QUICK_ALONE)
        return Following(line, "to train the networks, which may see more than frozen features")
    drawn = [row for row in record.confounders if row.scope != "attribute"]
    painted = [row.confounder for row in drawn if row.rms is not None]
    if drawn and not painted:
        return fitting
    if record.confounders and not painted:
        line = source.typed.again(("--confounder", "tag"))
        return Following(line, "to put an artefact into the images, and see whether it is relied on")
    if record.readable and not record.entries:
        flags: list[Flag] = [("--attribute", row.attribute) for row in record.readable[:1]]
        return Following(source.typed.again(*flags, without=("--readable",)), "to measure whether it is used, too")
    edit = painted[0].partition(AGAINST)[0] if painted else "tag"
    line = source.typed.then("edit", data, new_folder("edited"), flags=[("--with", edit)])
    return Following(line, "to write images with the artefact, and look at them")


AUDIT_CAVEATS: tuple[CaveatOf[AuditRecord], ...] = (
    unsound_data,
    unreadable_files,
    warned_of_data,
    may_have_seen,
    nothing_assessable,
    lost_in_rounding,
    may_be_clinical,
    looked_before,
    without_groups,
)


_LEVELS = NumberFormat(decimals=2)
_DECIBELS = NumberFormat(decimals=1)
_OVER_PATIENTS = Column("Over patients", numeric=True, csv_titles=("patients_low", "patients_high"), page_only=True)
_MOST_FIGURES = 12
_CAPTION = (
    "AUC on test images like those of training (i.i.d.) and where the artefact goes against the class (o.o.d.), mean over folds "
    "with intervals of 95 %. Dotted: a model that sees nothing but the artefact."
)

_READABLE = (
    "AUC of logistic regression that was fitted to images of other patients, with its interval over patients of the test part; "
    "0.5 is chance. Random weights: the same architecture untrained. Pixels: what the network gets, as means of 16 × 16 areas. "
    "Class alone: what follows from who has the disease. What can be read need not be used: --attribute measures that."
)
_LEVELS_CAPTION = (
    "O.o.d. AUC, mean over folds with intervals of 95 %: the artefact against images without it, and against images that have "
    "another level of it. What falls less is harder to tell apart."
)


def audit_heading(source: Source[AuditRecord]) -> Heading:
    """Models, artefacts and images."""
    record = source.record
    names = list(dict.fromkeys([*(entry.model for entry in record.entries), *(row.model for row in record.readable)]))
    models = names[0] if len(names) == 1 else counted(len(names), "model")
    facts = [
        *([counted(len(record.confounders), "confounder")] if record.confounders or not record.readable else []),
        f"{record.positive} against the rest",
        f"{record.num_test} test images ({record.num_positive_test} positive)",
        *([] if record.mode == "trained" else [f"{record.mode} mode", counted(record.num_folds, "fold")]),
    ]
    return Heading(
        title=f"Audit of {models} on {record.dataset.name}",
        summary=" · ".join(facts),
        advice=in_one_line(answer_in_words(record), caveats_of(source, AUDIT_CAVEATS)),
    )


def audit_verdict_section(source: Source[AuditRecord]) -> Section:
    """Outcomes with their reasons, and the artefacts in the user's images."""
    record = source.record
    caveats, shown = caveats_of(source, AUDIT_CAVEATS), [*_figures(source), *data_gallery(source.thumbnails)]
    return verdict_section(answer_in_words(record), caveats, after_audit(source), *shown)


def outcomes_section(source: Source[AuditRecord]) -> Section | None:
    """One row per model, confounder and mitigation; None of a plan."""
    record = source.record
    if not record.entries and (record.needs or record.readable):
        return None
    title = headline(record.entries[0])[0] if record.entries else "SRI"
    has_mitigation = any(entry.mitigation != "erm" for entry in record.entries)
    over_patients = (_OVER_PATIENTS, lambda entry: patients_cell(_headline_metric(entry)))
    table = table_of(
        record.entries,
        [
            *model_column(record),
            (Column("Confounder"), lambda entry: words(entry.confounder)),
            *([(Column("Training"), lambda entry: words(entry.mitigation))] if has_mitigation else []),
            (Column("Outcome"), lambda entry: words(OUTCOMES[entry.outcome], strong=entry.outcome == "relies")),
            (Column(title, numeric=True), lambda entry: metric_cell(_headline_metric(entry))),
            (INTERVAL, lambda entry: ends_cell(_headline_metric(entry))),
            metric_column("Pull", "pull") if record.mode == "trained" else over_patients,
            metric_column("Clean AUC", "clean_auc"),
            metric_column("O.o.d. AUC", "ood_auc"),
            (Column("Detectability", numeric=True), lambda entry: metric_cell(entry.detectability)),
        ],
        caption="Outcomes",
        file_name="outcomes",
        notes=[_explained(record)],
    )
    reasons = [f"{named_entry(entry)}: {entry.reason}" for entry in record.entries if not _speaks_for_itself(entry)]
    blocks: list[Block] = [table, *([Items(reasons)] if reasons else [])]
    return Section(name="outcomes", title="Outcomes", part="evidence", blocks=blocks)


def readable_section(source: Source[AuditRecord]) -> Section | None:
    """What a probe reads of who is in the picture; None where nothing was asked."""
    if not source.record.readable:
        return None
    table = table_of(
        source.record.readable,
        [
            (Column("Model"), lambda row: words(row.model)),
            (Column("Attribute"), lambda row: words(row.said)),
            (Column("Read from"), lambda row: words(row.features)),
            (Column("AUC", numeric=True), lambda row: metric_cell(row.auc)),
            (INTERVAL, lambda row: ends_cell(row.auc)),
            (Column("Minus random weights", numeric=True), lambda row: metric_cell(row.more_than_random_weights)),
            (
                Column("95 % interval", numeric=True, csv_titles=("more low", "more high")),
                lambda row: ends_cell(row.more_than_random_weights),
            ),
            (Column("Minus class", numeric=True), lambda row: metric_cell(row.more_than_class)),
            (
                Column("95 % interval", numeric=True, csv_titles=("class low", "class high")),
                lambda row: ends_cell(row.more_than_class),
            ),
            (Column("Images", numeric=True, page_only=True), lambda row: whole(row.num_images)),
            (Column("With it", numeric=True, page_only=True), lambda row: whole(row.num_with)),
        ],
        caption="What can be read from features",
        file_name="readable",
        notes=[_READABLE],
    )
    return Section(name="readable", title="Who is in the picture", part="evidence", blocks=[table])


def needs_section(source: Source[AuditRecord]) -> Section | None:
    """How many images a verdict needs; None where nothing was asked that needs any."""
    if not source.record.needs:
        return None
    table = table_of(
        source.record.needs,
        [
            (Column("Confounder"), lambda row: words(row.confounder)),
            (Column("Which"), lambda row: words(row.what)),
            (Column("There are", numeric=True), lambda row: whole(row.available)),
            (Column("Needed", numeric=True), lambda row: whole(row.needed)),
        ],
        caption="Images that a verdict needs",
        file_name="needs",
        notes=[
            "In the part that is measured on. Of an artefact: so that 3 of n are fewer than 0.05. Of an attribute: so that 80 % "
            "of the models that pay no heed to it pass, at a supposed AUC of 0.8. An undecided verdict says what it needs."
        ],
    )
    return Section(name="needs", title="Images needed", part="checks", blocks=[table])


def needs_text_section(source: Source[AuditRecord]) -> Section | None:
    """On the terminal of a plan alone."""
    return None if source.record.entries else needs_section(source)


def confounders_section(source: Source[AuditRecord]) -> Section | None:
    """What was put into images, and what files alone tell; None where nothing was."""
    record = source.record
    table = table_of(
        record.confounders,
        [
            (Column("Confounder"), lambda row: words(row.confounder)),
            (Column("What it is"), lambda row: words(row.said)),
            (Column("Place in MICCAT"), lambda row: words(_place(row.leaf))),
            (Column("rms", numeric=True), lambda row: number(row.rms, _LEVELS)),
            (
                Column("Changed", numeric=True),
                lambda row: words("" if row.share_changed is None else small_percent(row.share_changed)),
            ),
            (Column("PSNR, dB", numeric=True), lambda row: number(row.psnr, _DECIBELS)),
        ],
        caption="Confounders",
        file_name="confounders",
        notes=[
            "rms: root mean square of what changed, in grey levels of 8 bits. Changed: share of the samples. PSNR: below 40 dB a "
            "person sees it."
        ],
    )
    blocks: list[Block] = [*([table] if record.confounders else []), *reach_blocks(record)]
    if record.file_facts:
        facts = table_of(
            record.file_facts,
            [
                (Column("Fact of the file"), lambda row: words(row.fact)),
                (Column("Images", numeric=True), lambda row: whole(row.num_images)),
                (Column("Balanced accuracy", numeric=True), lambda row: metric_cell(row.balanced_accuracy)),
                (INTERVAL, lambda row: ends_cell(row.balanced_accuracy)),
            ],
            caption="How well a fact of the file alone tells the class",
            file_name="file_facts",
            notes=["Cross-validated; 0.5 is chance. No pixel of the content is looked at."],
        )
        blocks.append(facts)
    return Section(name="confounders", title="Confounders", part="evidence", blocks=blocks) if blocks else None


def audited_data_section(source: Source[AuditRecord]) -> Section:
    """The images, how carriers were drawn, conditions and checks."""
    record = source.record
    drawn = [
        ("Class in question", record.positive),
        ("Drawn by", record.unit),
        ("Artefacts in", "images as they are" if record.stage == "native" else "images resized for the network"),
        ("Strength", f"{record.strength:g}"),
        ("Seed", str(record.seed)),
    ]
    if record.mode != "trained":
        drawn += [
            ("Shares", ", ".join(f"{share:g}" for share in record.shares)),
            ("Negatives that carry it", percent(record.negatives)),
            ("Test images", "mean over all draws" if record.test_mode == "exact" else "one draw per share"),
        ]
    blocks: list[Block] = [Facts(data_facts(record.dataset)), Facts(drawn)]
    of_points = [point.metrics for entry in record.entries for point in entry.points]
    metrics = [each for found in (*(entry.metrics for entry in record.entries), *of_points) for each in found]
    notes = [*record.notes, *reasons_of_no_interval([*metrics, *(row.balanced_accuracy for row in record.file_facts)])]
    if notes:
        blocks.append(Items(notes))
    if record.gates:
        blocks.append(Items([f"--fail-on {gate.condition}: {gate.state}. {gate.said}" for gate in record.gates]))
    if record.checks:
        blocks.append(Checks(record.checks))
    return Section(name="data", title="Data and checks", part="checks", blocks=blocks)


def _speaks_for_itself(entry: AuditEntry) -> bool:
    """Whether the number beside the outcome shows why it is so."""
    if entry.outcome == "passes":
        return True
    metric = _headline_metric(entry)
    swept = entry.outcome == "relies" and entry.mode != "trained"
    return swept and metric is not None and metric.value is not None and metric.value > 0


def _headline_metric(entry: AuditEntry) -> AuditMetric | None:
    return entry.metric(headline(entry)[1])


def _figures(source: Source[AuditRecord]) -> list[Block]:
    """Curves of the first entries with a sweep; the others are in curves.csv."""
    has_several = has_several_models(source.record)
    swept = [entry for entry in source.record.entries if len(entry.points) > 1]
    drawings = [
        reliance_figure(
            RelianceCurve(
                named_entry(entry) if has_several else with_mitigation(entry),
                [point.share for point in entry.points],
                [Interval.of(point.metric("iid")) for point in entry.points],
                [Interval.of(point.metric("ood")) for point in entry.points],
            ),
            identifier=f"{source.prefix}curve-{place}",
        )
        for place, entry in enumerate(swept[:_MOST_FIGURES])
    ]
    more = f" {len(swept) - _MOST_FIGURES} more are in curves.csv." if len(swept) > _MOST_FIGURES else ""
    return [*_beside_levels(source, swept), *([Figure(drawings, caption=_CAPTION + more)] if drawings else [])]


def _beside_levels(source: Source[AuditRecord], swept: Sequence[AuditEntry]) -> list[Block]:
    """O.o.d. curves of an artefact against nothing, and of the same against another level of it, in one drawing per model."""
    against = {each.confounder.partition(":")[0].partition(AGAINST)[0] for each in swept if AGAINST in each.confounder}
    of_models: dict[str, list[AuditEntry]] = {}
    for entry in swept:
        if entry.confounder.partition(":")[0].partition(AGAINST)[0] in against and entry.mitigation == "erm":
            of_models.setdefault(entry.model, []).append(entry)
    drawings = [
        ood_figure(
            model,
            [
                OodCurve(
                    _level_in_words(
                        entry.confounder, several=len({each.confounder.partition(AGAINST)[0] for each in entries}) > 1
                    ),
                    [point.share for point in entry.points],
                    [Interval.of(point.metric("ood")) for point in entry.points],
                )
                for entry in entries
            ],
            identifier=f"{source.prefix}levels-{place}",
        )
        for place, (model, entries) in enumerate(list(of_models.items())[:_MOST_FIGURES])
        if len(entries) > 1
    ]
    return [Figure(drawings, caption=_LEVELS_CAPTION)] if drawings else []


def _level_in_words(confounder: str, *, several: bool) -> str:
    """Named by what images without the artefact have, and by the artefact where there are several levels of it."""
    artefact, _, other = confounder.partition(AGAINST)
    return f"{artefact if several else ''} against {other or 'images without it'}".strip()


def _place(leaf: str | None) -> str:
    """From the root of MICCAT."""
    return "" if leaf is None else f"{'patient' if leaf in ('demographic', 'anatomical') else 'environment'} › {leaf}"


def _explained(record: AuditRecord) -> str:
    detected = "Detectability: AUC of a probe that tells images with the artefact from those without it by their features."
    if record.mode == "trained":
        return (
            "AUC drop: AUC of clean images minus AUC where negatives carry the artefact and positives do not. Pull: how far it "
            f"moves answers towards the class in question, in standard deviations within a class. {detected}"
        )
    return (
        "SRI, shortcut reliance index: area between i.i.d. and o.o.d. AUC over the shares, less that at share 0; 0 is no "
        f"reliance, 0.725 a model that sees nothing else. O.o.d. at the largest share. {detected}"
    )


REPORT = Kind(
    AuditRecord,
    audit_heading,
    (
        audit_verdict_section,
        outcomes_section,
        differences_section,
        numbers_section,
        groups_section,
        readable_section,
        frequency_section,
        confounders_section,
        needs_section,
        audited_data_section,
        checklists_section,
        provenance_section,
        references_section,
    ),
    terminal=(
        needs_text_section,
        outcomes_section,
        differences_section,
        readable_section,
        frequency_section,
        audit_verdict_section,
    ),
    answers=AUDIT_ANSWERS,
)
