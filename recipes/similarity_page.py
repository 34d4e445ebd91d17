"""The page docs/results/similarity.md, written of the rows that recipes/similarity.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from similarity_figure import MEASURES, write_gains, write_layers, write_mistakes, write_planes
from similarity_methods import METHOD_TITLES, claims_table, methods_table, models_of, said
from similarity_numbers import (
    PARTS,
    Gaps,
    Points,
    Study,
    after_minus_before,
    after_minus_random,
    after_minus_untrained,
    aucs,
    changed_less,
    chosen,
    correlation,
    gains,
    minus,
    mistakes,
    points_of,
    within_sets,
)
from similarity_rows import ClassesRow
from similarity_sets import RANDOM, SOURCES
from similarity_text import PAGE
from studies import Target, difference_of
from study_tables import in_numbers, mean_and_interval, share_and_interval
from study_vit import VIT_NAME

WAYS = ("full", "head-first", "linear")
LAYER_CLAIMS = (  # of the thesis, differences that it has above (+1) or below 0 (−1), or at 0
    ("ImageNet changes less than the other source (3.3a)", changed_less, 1),
    ("After fine-tuning two sources are less alike than before (3.3b)", after_minus_before, -1),
    ("Two fine-tuned sources are less alike than two random initialisations (3.3b)", after_minus_untrained, -1),
    ("Two fine-tuned sources are about as alike as each is to a random initialisation (3.3b)", after_minus_random, 0),
)


def write_page(path: Path, rows: Path, targets: Sequence[Target], *, seeds: int) -> None:
    """The page and, in a folder beside it, its figures; what is missing is said."""
    study, titles = Study.read(rows, targets), {target.name: target.title for target in targets}
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    write_layers(folder / "layers.svg", study, titles)
    write_mistakes(folder / "mistakes.svg", study, titles)
    write_gains(folder / "gains.svg", study, titles)
    of_set = next(iter(study.points.values()), ())
    network = next((name for name in models_of(study) if any(point.model == name for point in of_set)), "")
    drawn = [point for point in of_set if point.model == network]
    for kind in ("pca", "tsne"):
        write_planes(folder / f"{kind}.svg", drawn, kind, METHOD_TITLES)
    text = PAGE.format(
        folder=folder.name,
        first_set=next(iter(titles.values())),
        network=network or "no network yet",
        progress=_progress(study, len(titles), seeds),
        in_short=_in_short(study),
        aucs=_aucs(study, titles),
        layers=_layers(study),
        mistakes=_mistakes(study),
        mistakes_claims=_mistakes_claims(study),
        gains=_gains(study),
        statistics=_statistics(study),
        classes=_classes(study),
        positions=_positions(study),
        methods=methods_table(study, titles),
        claims=claims_table(study),
    )
    path.write_text(text, encoding="utf-8")


def _progress(study: Study, sets: int, seeds: int) -> str:
    """What of the whole study is there."""
    there = sum(row.state == "done" for table in study.trainings.values() for row in table.trainings)
    pairs = {(name, row.key[:4]) for name, rows in study.mistakes.items() for row in rows if row.variant != "before"}
    networks = sum(len(rows) for rows in study.geometry.values())
    centred = sum(row.to_centre is not None for rows in study.geometry.values() for row in rows)
    counts = [
        ("trainings", there, sets * seeds * (1 + 3 * len(WAYS))),
        ("comparisons of two sources", len(pairs), sets * seeds * 3 * len(WAYS)),
        ("networks of the second part", networks, sets * seeds * 2 * len(METHOD_TITLES)),
        ("distances to a centre", centred, sets * seeds * 2 * len(METHOD_TITLES)),
    ]
    missing = [f"{found} of {wanted} {words}" for words, found, wanted in counts if found < wanted]
    if VIT_NAME not in models_of(study):
        missing.append("no ViT, so that nothing is said of LayerNorm and of attention (Fig. 5)")
    return f"**The study is not finished: there are {'; '.join(missing)}.**\n" if missing else ""


def _in_short(study: Study) -> str:
    """Each claim in a line, of full fine-tuning and all layers."""
    lines: list[str] = []
    for claim, gaps_of, sign in LAYER_CLAIMS:
        found = {words: gaps_of(study, measure, "full", "all") for measure, words in MEASURES.items()}
        lines.append(f"- **{claim}**: {_told(found, sign)}.")
    value = mistakes(study, "full", lambda row: row.value)
    independent = minus(value, mistakes(study, "full", lambda row: row.independent))
    lines.append(f"- **Mistakes are shared more than independent ones (3.5)**: {_told({'P': independent}, 1)}.")
    before = minus(value, mistakes(study, "before", lambda row: row.value))
    kappas = [mistakes(study, way, lambda row: row.kappa) for way in ("full", "before")]
    found = {"P": before, "κ, which is free of accuracy": minus(*kappas)}
    lines.append(f"- **… and more than before fine-tuning (3.5)**: {_told(found, 1)}.")
    for measure, words in MEASURES.items():
        counts: list[str] = []
        for kind, is_within in (("all points", False), ("within sets", True)):
            below, around, above = excluded(study, measure, is_within=is_within)
            counts.append(f"{kind} {around} of {below + around + above} with 0 inside, {below} below, {above} above")
        lines.append(
            f"- **Similarity does not go with the gain (3.6)**, {words}, intervals of the correlations of each source and "
            f"layer: {'; '.join(counts)}."
        )
    return "\n".join(lines)


def _told(found: Mapping[str, Gaps], sign: int) -> str:
    return "; ".join(
        f"{words} {in_numbers(difference_of(list(gaps.values())))}, {said(gaps, sign)}" for words, gaps in found.items()
    )


def excluded(study: Study, measure: str, *, is_within: bool) -> tuple[int, int, int]:
    """Correlations with an interval below 0, around 0 and above 0."""
    places = {row.place for _, row in chosen(study, measure=measure, of="change", variant="full")}
    known = [
        found
        for source in SOURCES
        for place in sorted(places)
        if (found := correlation(_points(study, measure, source, place, is_within=is_within)))
    ]
    below, above = sum(high < 0 for _, _, high in known), sum(low > 0 for _, low, _ in known)
    return below, len(known) - below - above, above


def _points(study: Study, measure: str, source: str, place: int, *, is_within: bool) -> Points:
    points = points_of(study, measure, source, place)
    return within_sets(points) if is_within else points


def _aucs(study: Study, titles: Mapping[str, str]) -> str:
    lines = ["| Set | Source | Way | AUC | Gain, absolute | Gain, relative |", "|---" * 6 + "|"]
    for name, title in titles.items():
        own = study._replace(trainings={name: study.trainings[name]})
        lines.append(f"| {title} | random weights | scratch | {_shares(aucs(own, 'scratch', RANDOM))} | | |")
        for source, words in SOURCES.items():
            for way in [way for way in WAYS if aucs(own, way, source)]:
                cells = [
                    _shares(aucs(own, way, source)),
                    *(_over(gains(own, way, source, relative=relative)) for relative in (False, True)),
                ]
                lines.append(f"| {title} | {words} | {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shares(found: Gaps) -> str:
    return share_and_interval(list(found.values()))


def _over(found: Gaps) -> str:
    return mean_and_interval(list(found.values()))


def _layers(study: Study) -> str:
    """The claims of Fig. 3.3, for each measure, way and part of the network, and their means in each set."""
    titles = " | ".join(f"{words} | {' | '.join(study.layers)} | Here" for words in MEASURES.values())
    lines = [f"| Claim | Way | Layers | {titles} |", "|---" * (3 + len(MEASURES) * (2 + len(study.layers))) + "|"]
    for claim, gaps_of, sign in LAYER_CLAIMS:
        for way in WAYS[:2]:
            for part in PARTS:
                found = {measure: gaps_of(study, measure, way, part) for measure in MEASURES}
                if any(found.values()):
                    cells = [cell for gaps in found.values() for cell in _layer_cells(gaps, sign, list(study.layers))]
                    lines.append(f"| {claim} | {way} | {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _layer_cells(gaps: Gaps, sign: int, sets: Sequence[str]) -> list[str]:
    of_sets = [[gap for (name, _), gap in gaps.items() if name == wanted] for wanted in sets]
    means = [f"{statistics.fmean(each):+.3f}" if each else "–" for each in of_sets]
    return [in_numbers(difference_of(list(gaps.values()))), *means, said(gaps, sign)]


def _mistakes(study: Study) -> str:
    lines = ["| Predictions | P(both right or both wrong) | Independent | Difference | κ | Accuracy |", "|---" * 6 + "|"]
    for variant, words in (("before", "before, linear probe"), ("linear", "LINEAR, trained head"), *((w, w) for w in WAYS[:2])):
        value = mistakes(study, variant, lambda row: row.value)
        if not value:
            continue
        independent = mistakes(study, variant, lambda row: row.independent)
        cells = [
            _over(value),
            _over(independent),
            in_numbers(difference_of(list(minus(value, independent).values()))),
            _over(mistakes(study, variant, lambda row: row.kappa)),
            _over(mistakes(study, variant, lambda row: (row.accuracy + row.other_accuracy) / 2)),
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mistakes_claims(study: Study) -> str:
    lines = ["| Claim | Way | Difference | Here |", "|---" * 4 + "|"]
    for way in [way for way in WAYS[:2] if mistakes(study, way, lambda row: row.value)]:
        value = mistakes(study, way, lambda row: row.value)
        rows = [
            ("more alike than independent (3.5)", minus(value, mistakes(study, way, lambda row: row.independent))),
            ("more alike than before (3.5)", minus(value, mistakes(study, "before", lambda row: row.value))),
            (
                "the same in κ, which is free of accuracy",
                minus(mistakes(study, way, lambda row: row.kappa), mistakes(study, "before", lambda row: row.kappa)),
            ),
        ]
        lines += [
            f"| {claim} | {way} | {in_numbers(difference_of(list(gaps.values())))} | {said(gaps, 1)} |" for claim, gaps in rows
        ]
    return "\n".join(lines)


def _gains(study: Study) -> str:
    """Spearman of similarity and relative gain, of each source and layer."""
    lines = ["| Measure | Layer | " + " | ".join(f"{words} | within sets" for words in SOURCES.values()) + " |"]
    lines += ["|---" * (2 + 2 * len(SOURCES)) + "|"]
    for measure, words in MEASURES.items():
        names = {row.place: row.layer for _, row in chosen(study, measure=measure, of="change", variant="full")}
        for place in sorted(names, key=lambda at: (at < 0, at)):
            cells: list[str] = []
            for source in SOURCES:
                for is_within in (False, True):
                    points = _points(study, measure, source, place, is_within=is_within)
                    cells.append(_in_brackets(correlation(points)))
            lines.append(f"| {words} | {names[place]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _in_brackets(found: tuple[float, float, float] | None) -> str:
    return "–" if found is None else f"{found[0]:+.2f} [{found[1]:+.2f}, {found[2]:+.2f}]"


def _statistics(study: Study) -> str:
    """CKA of penultimate features to the pretrained network, and what statistics of BatchNorm do on their own."""
    lines = ["| Source | full | head-first | statistics alone |", "|---" * 4 + "|"]
    for source, words in SOURCES.items():
        cells = [_over(_trained(study, way, source)) for way in WAYS[:2]]
        moved = [
            row.cka_debiased_untouched
            for table in study.trainings.values()
            for row in table.kept
            if (row.model, row.variant) == (source, "full") and row.cka_debiased_untouched is not None
        ]
        lines.append(f"| {words} | {' | '.join(cells)} | {mean_and_interval(moved)} |")
    return "\n".join(lines)


def _trained(study: Study, way: str, source: str) -> dict[tuple[str, int], float]:
    return {
        (name, row.seed): row.cka_debiased
        for name, table in study.trainings.items()
        for row in table.trainings
        if (row.variant, row.model) == (way, source) and row.cka_debiased is not None
    }


def _classes(study: Study) -> str:
    """CKA of penultimate features of two sources with and without what tells classes apart."""
    lines = ["| Set | | Share of the classes in the variance | CKA | CKA within classes |", "|---" * 5 + "|"]
    for name, rows in study.classes.items():
        for when in ("before", "full"):
            own = [row for row in rows if row.variant == when]
            shares = [share for row in own for share in (row.share, row.other_share)]
            cells = [mean_and_interval(_by_seed(own, column)) for column in ("cka", "cka_within")]
            if own:
                words = "before" if when == "before" else "after, full"
                lines.append(f"| {name} | {words} | {statistics.fmean(shares):.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_seed(rows: Sequence[ClassesRow], column: str) -> list[float]:
    """Mean over pairs of sources of each seed."""
    seeds = sorted({row.seed for row in rows})
    return [statistics.fmean(getattr(row, column) for row in rows if row.seed == seed) for seed in seeds]


def _positions(study: Study) -> str:
    lines = ["| Set | " + " | ".join(f"{name}" for name in _cca_layers(study)) + " |"]
    lines += ["|---" * (1 + len(_cca_layers(study))) + "|"]
    for name in study.layers:
        own = study._replace(layers={name: study.layers[name]})
        rows = {row.layer: row for _, row in chosen(own, measure="cca", of="change", variant="full")}
        cells = [
            f"{rows[layer].positions} × {rows[layer].channels}, floor {_floor(own, layer)}" if layer in rows else "–"
            for layer in _cca_layers(study)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cca_layers(study: Study) -> list[str]:
    found = {row.place: row.layer for _, row in chosen(study, measure="cca", of="change", variant="full")}
    return [found[place] for place in sorted(found)]


def _floor(study: Study, layer: str) -> str:
    values = [
        row.untrained
        for _, row in chosen(study, measure="cca", of="change", variant="full")
        if row.layer == layer and row.untrained is not None
    ]
    return f"{statistics.fmean(values):.2f}" if values else "–"
