"""What docs/results/repsim.md says of its tables: kinds of networks, forms of RepSim, short trainings, ablations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drawing.repsim_figure import draw
from drawing.repsim_tasks import around_the_centre, by_order, one_after_another, seeds_told, whether_kept
from tables import (
    PLACE,
    Difference,
    Lines,
    body,
    by_pair,
    by_seed,
    difference,
    gaps,
    markdown,
    mean,
    mean_and_interval,
    median,
    minus,
    number,
    of_variant,
    read,
    read_csv,
    sections,
    signed,
    verdict,
)

from crossgraft.words.formatting import joined

SETS = {"breastmnist": "BreastMNIST", "pneumoniamnist": "PneumoniaMNIST", "retinamnist": "RetinaMNIST"}
VIT = "vit_d96"
COLUMNS = {"accuracy": "Accuracy", "auc": "AUC", "cka_debiased": "CKA, debiased", "cka_debiased_adapted": "… to re-estimated",
           "cka": "CKA, biased"}  # fmt: skip
USES = {"probe_natural": "Probe, natural images", "probe_medical": "Probe, other medical set",
        "clean_accuracy": "Accuracy, clean", "corrupted_accuracy": "Accuracy, corrupted"}  # fmt: skip
DEFAULT = "repsim"
FORMS = (DEFAULT, "batch", "paper", "procrustes")
SHOWN = ("full", "l2_sp", "hcs 0.8", *FORMS)
WEIGHTS = ("0.1", "1", "10")
PAPER = {"full": (72.02, 0.52), "repsim": (71.03, 0.68), "hcs 0.8": (68.79, 0.76), "linear": (61.41, None)}
"""RepSim, Table 1, means of five sets: accuracy (mAP of two sets) in %, CKA."""
ORDERINGS = (  # first, second, number, what the paper has
    ("full", "repsim", "accuracy", "Table 1: 72.02 and 71.03"),
    ("repsim", "full", "cka_debiased", "Table 1: 0.68 and 0.52"),
    ("hcs 0.8", "repsim", "cka_debiased", "Table 1: 0.76 and 0.68"),
    ("repsim", "hcs 0.8", "accuracy", "Table 1: 71.03 and 68.79"),
    ("hcs 0.8", "linear", "accuracy", "Table 1: 68.79 and 61.41"),
)
EPOCHS = (2, 6)
JUDGED = ("ham10000", "medical_mnist", "brain_mri", "pneumoniamnist")
CHOSEN_ON = ("breastmnist", "retinamnist", "busi")
"""The rule of short trainings was made on these, see docs/log.md."""
IN_SHORT = {"full": "FULL", "repsim": "`repsim`: 1 − CKA", "paper": "`repsim:preset=paper`: eq. 13–14"}
ABLATIONS = (  # first, second, in words, published; the study as it is otherwise is the empty name
    ("", "fixed Q", "learned Q − fixed Q", "+0.40, +0.04"),
    ("", "with μ", "without μ − with μ", "+0.46, +0.09"),
    ("batches of 128", "batches of 4", "batches of 128 − of 4", "+2.53, +0.39"),
    ("", "batches of 4", "batches of 64 − of 4", "of 32: +1.91, +0.09"),
)


class Kind(NamedTuple):
    """Networks of one kind, trained in one way, and the ending of the names of their variants."""

    title: str
    is_vit: bool
    ending: str

    @property
    def reference(self) -> str:
        """The similarity to the network that training started from."""
        return "cka_debiased_adapted" if self.ending == ", adapt" else "cka_debiased"

    def rows(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Those of its networks, by names without the ending; FULL and L2-SP of ``adapt`` are those of ``train``."""
        own = rows[(rows["model"] == VIT) == self.is_vit]
        return own.assign(variant=own["variant"].map(self._name)).dropna(subset=["variant"])

    def _name(self, variant: str) -> str | None:
        if self.ending and variant.endswith(self.ending):
            return variant.removesuffix(self.ending)
        is_same = self.ending == ", adapt" and variant in ("full", "l2_sp")
        is_linear = self.ending == ", frozen" and variant == "linear"
        return variant if is_same or is_linear or (not self.ending and ", " not in variant) else None


KINDS = (
    Kind("LayerNorm (ViT)", True, ""),
    Kind("BatchNorm, train", False, ""),
    Kind("BatchNorm, frozen", False, ", frozen"),
    Kind("BatchNorm, adapt", False, ", adapt"),
)


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "repsim"
    rows = read(folder, SETS).merge(read(folder, SETS, "-kept"), how="left", on=["set", "model", "variant", "seed"])
    curve = read(folder, SETS, "-curve")
    chained, centred = (read_csv(folder / f"{name}.csv") for name in ("continual", "centre"))
    few = read(folder / "few_steps", [*JUDGED, *CHOSEN_ON])
    own = {kind: kind.rows(rows) for kind in KINDS}
    panels = {kind.title: (own[kind], curve[(curve["model"] == VIT) == kind.is_vit]) for kind in KINDS[:3]}
    draw(figures / "trade-off.svg", panels)
    return {
        "headline": body(headline(rows, few)),
        "differences": body(in_few_steps(rows, few)),
        "few_seeds": ", ".join(map(str, sorted(few["seed"].unique()))),
        **kept_everywhere(rows),
        **why_frozen(rows),
        "batch_norm": body(batch_norm_modes(rows)),
        "kinds": sections({kind.title: of_kind(kind, own[kind]) for kind in KINDS}),
        "orderings": body(orderings(own)),
        "ablations": body(ablations(pd.concat([rows[rows["set"] == "breastmnist"], read(folder, ["ablations"])]))),
        "weights": body(weights(own)),
        "free": body(free(own, curve)),
        "uses": body(uses(own)),
        **use_differences(own),
        "bought": bought(own),
        "continual": body(one_after_another(chained)),
        "continual_orders": body(by_order(chained)),
        "continual_seeds": seeds_told(chained),
        "whether_kept": whether_kept(chained),
        "centre": around_the_centre(centred),
        "centre_seeds": seeds_told(centred),
        "published": body(beside_published(own[KINDS[0]])),
        "tables": sections({title: of_set(rows[rows["set"] == name]) for name, title in SETS.items()}),
    }


def paired(rows: pd.DataFrame, first: str, second: str, metric: str) -> Difference | None:
    """First minus second over pairs of set and network."""
    return difference(by_pair(gaps(rows, first, second, metric)))


def comparable(rows: pd.DataFrame, variant: str, metric: str) -> str:
    """Mean and interval over the seeds that were trained on every set and network of FULL; others mean another mix."""
    found, places = of_variant(rows, variant, metric), ["set", "model"]
    wanted = of_variant(rows, "full", "accuracy").groupby(level=places).ngroups
    whole = found.groupby(level="seed").transform("size") == wanted if len(found) else []
    return mean_and_interval(by_seed(found[whole]))


def default_variant(model: str) -> str:
    """What ``--regularizer repsim`` trains on its own: statistics of BatchNorm stay as they came."""
    return DEFAULT if model == VIT else f"{DEFAULT}, frozen"


def headline(rows: pd.DataFrame, few: pd.DataFrame) -> Lines:
    """One line a set and network: debiased CKA / accuracy of each form, of the short trainings and of the long ones."""
    every = pd.concat([rows, few])
    found = every.groupby(["set", "model", "variant"])[["cka_debiased", "accuracy"]].agg(mean)
    for name in dict.fromkeys(every["set"]):
        for model in sorted({*every[every["set"] == name]["model"]}):
            variants = [f"{form}, {epochs} epochs" for epochs in EPOCHS for form in IN_SHORT]
            variants += ["full", default_variant(model), "paper" if model == VIT else "paper, frozen"]
            cells = (found.loc[name, model, each] if (name, model, each) in found.index else None for each in variants)
            yield [name, model, *("–" if each is None else "{:.3f} / {:.3f}".format(*each) for each in cells)]


def in_few_steps(rows: pd.DataFrame, few: pd.DataFrame) -> Lines:
    """Each form minus FULL over pairs of set, length and network; by network where something was decided."""

    def line(part: str, title: str, network: str, similar: pd.Series, accuracy: pd.Series) -> list[object]:
        pairs = [by_pair(each) for each in (similar, accuracy)]
        return [part, title, network, len(pairs[1]), *(signed(difference(each)) for each in pairs)]

    metrics, normed = ("cka_debiased", "accuracy"), rows[rows["model"] != VIT]
    for form in ("repsim", "paper"):
        found = (gaps(normed, f"{form}, frozen", "full", metric) for metric in metrics)
        yield line("15 epochs", IN_SHORT[form], "all with BatchNorm", *found)
    titles = {**IN_SHORT, "repsim, train": "`repsim --batch-norm train`: 1 − CKA, the default before"}
    for part, names in {"few steps": JUDGED, "few steps, sets of the choice": CHOSEN_ON}.items():
        own = few[few["set"].isin(names)]
        for form in ("repsim", "paper", "repsim, train"):
            networks = sorted(own["model"].unique()) if (form, names) == ("repsim", JUDGED) else []
            for network in [*networks, ""]:
                found = [short_gaps(own[own["model"] == network] if network else own, form, metric) for metric in metrics]
                if len(found[0]):
                    yield line(part, titles[form], network or "all", *found)


def short_gaps(few: pd.DataFrame, form: str, metric: str) -> pd.Series:
    """The form minus FULL; each length is a set of its own."""
    of_length = {
        epochs: gaps(few.assign(set=few["set"] + f", {epochs}"), f"{form}, {epochs} epochs", f"full, {epochs} epochs", metric)
        for epochs in EPOCHS
    }
    return pd.concat(of_length.values())


def kept_everywhere(rows: pd.DataFrame) -> dict[str, str]:
    """The default beside FULL on every set and network, and over all of them."""
    lines: list[list[str]] = []
    accuracies: list[pd.Series] = []
    for (name, model), own in rows.groupby(["set", "model"], sort=False):
        default = default_variant(model)
        full, kept = (of_variant(own, variant, "cka_debiased") for variant in ("full", default))
        accuracies.append(gaps(own, default, "full", "accuracy"))
        lines.append([name, model, *map(mean_and_interval, (full, kept, minus(kept, full), accuracies[-1]))])
    found = difference(by_pair(pd.concat(accuracies)))
    return {"kept": body(lines), "kept_accuracy": signed(found), "kept_ahead": found.ahead_of_pairs}


def batch_norm_modes(rows: pd.DataFrame) -> Lines:
    """Each mode minus ``train``, over the pairs of set and network where both are there."""
    names = ("accuracy", "auc", "cka_debiased", "probe_natural", "probe_medical", "corrupted_accuracy")
    for variant, mode in product(SHOWN, ("frozen", "adapt")):
        found = [paired(rows, f"{variant}, {mode}", variant, name) for name in names]
        if found[0] is not None:
            yield [variant, mode, found[0].pairs, *map(signed, found)]


def why_frozen(rows: pd.DataFrame) -> dict[str, str]:
    """What decided the default beside RepSim and HCS, with its numbers."""
    words = {"cka_debiased": "debiased CKA", "corrupted_accuracy": "accuracy on corrupted images", "accuracy": "accuracy"}
    said = {"frozen_repsim": DEFAULT, "frozen_hcs": "hcs 0.8"}
    gains = {
        field: [f"{signed(paired(rows, f'{variant}, frozen', variant, name))} in {each}" for name, each in words.items()]
        for field, variant in said.items()
    }
    of_weights = signed(paired(rows, "l2_sp, frozen", "l2_sp", "cka_debiased"))
    return {field: joined(each) for field, each in gains.items()} | {"frozen_l2_sp": of_weights}


def of_kind(kind: Kind, rows: pd.DataFrame) -> str:
    lines: list[list[str]] = []
    for variant in ("linear", *SHOWN):
        cells = [comparable(rows, variant, metric) for metric in COLUMNS]
        gain = "" if variant in ("full", "linear") else signed(paired(rows, variant, "full", kind.reference))
        if gain not in ("", "–") or any(cell != "–" for cell in cells):
            lines.append([variant, *cells, gain])
    return markdown(["Variant", *COLUMNS.values(), "CKA − FULL's"], lines)


def orderings(own: dict[Kind, pd.DataFrame]) -> Lines:
    """What the paper orders, for each kind of network and each form of RepSim that may stand for it."""
    for kind, rows in own.items():
        for first, second, metric, published in ORDERINGS:
            for form in (DEFAULT, "paper", "batch") if "repsim" in (first, second) else ("",):
                one, other = (form if name == "repsim" else name for name in (first, second))
                name = kind.reference if metric == "cka_debiased" else metric
                if found := paired(rows, one, other, name):
                    cells = [kind.title, one, other, COLUMNS[name], signed(found), found.ahead_of_pairs]
                    yield [*cells, published, verdict(found).split(",")[0]]


def ablations(rows: pd.DataFrame) -> Lines:
    """Each ordering of Table 5 by kind of network and form, over pairs of network and seed."""
    kinds = {"LayerNorm (ViT)": ([VIT], ""), "BatchNorm, frozen": (["mobilenetv2_035", "resnet20"], "frozen")}
    for (kind, (models, frozen)), form in product(kinds.items(), ("paper", "batch")):
        own = rows[rows["model"].isin(models)]
        for first, second, said, published in ABLATIONS:
            one, other = (", ".join(filter(None, (form, frozen, change))) for change in (first, second))
            accuracy, similar = (gaps(own, one, other, name, ["model", "seed"]) for name in ("accuracy", "cka_debiased"))
            found = difference(similar)
            cells = [signed(difference(100 * accuracy), 2), signed(found), found.ahead_of_pairs, published]
            yield [kind, form, said, *cells, verdict(found).split(",")[0]]


def weights(own: dict[Kind, pd.DataFrame]) -> Lines:
    """Seed 0, of the pairs of set and network that have every weight of a form that is there at all."""
    for kind, rows in own.items():
        rows = rows[rows["seed"] == 0]
        for form in FORMS:
            usual = "0.3 √(d / 64)" if form == DEFAULT else "1"
            named = {**{weight: f"{form} × {weight}" for weight in WEIGHTS}, usual: form}
            found: dict[str, list[pd.Series]] = {}
            for metric in ("accuracy", kind.reference):
                there = {w: values for w, name in named.items() if len(values := of_variant(rows, name, metric))}
                common = set.intersection(*(set(values.index) for values in there.values())) if len(there) > 1 else set()
                for weight, values in there.items() if common else ():
                    found.setdefault(weight, []).append(values[[key in common for key in values.index]])
            for weight, both in found.items():
                if len(both) == 2:
                    shown = (mean_and_interval(by_seed(values)) for values in both)
                    yield [kind.title, form, weight, str(max(map(len, both))), *shown]


def free(own: dict[Kind, pd.DataFrame], curve: pd.DataFrame) -> Lines:
    """How much more accurate a variant is than what costs nothing at the same similarity."""
    for kind in KINDS[:3]:
        for variant in ("l2_sp", "hcs 0.8", *FORMS):
            found = [difference(by_pair(above(own[kind], curve, variant, line))) for line in ("mix", "estimate", "straight")]
            if any(found):
                cells = [f"{signed(each)}, {each.ahead_of_pairs}" if each else "–" for each in found]
                yield [kind.title, variant, *cells]


def above(rows: pd.DataFrame, curve: pd.DataFrame, variant: str, line: str) -> pd.Series:
    """How far the accuracy of each training lies above a line of its set, network and seed at the same debiased CKA."""
    both = ["cka_debiased", "accuracy"]
    points = rows[rows["variant"].isin(["full", "linear"])] if line == "straight" else curve[curve["batch_norm"] == line]
    ends = {key: own[both].dropna().sort_values(both).to_numpy() for key, own in points.groupby(PLACE)}
    own = rows[rows["variant"] == variant].set_index(PLACE)[both].dropna()
    own = own[[len(ends.get(key, ())) > 1 for key in own.index]]
    free = [float(np.interp(x, *ends[key].T)) for key, x in own["cka_debiased"].items()]
    return own["accuracy"] - free


def uses(own: dict[Kind, pd.DataFrame]) -> Lines:
    for kind in KINDS[:3]:
        for variant in ("linear", *SHOWN):
            cells = [comparable(own[kind], variant, metric) for metric in USES]
            if any(cell != "–" for cell in cells):
                yield [kind.title, variant, *cells]
        before = [comparable(own[kind], "full", f"{metric}_before") if "probe" in metric else "" for metric in USES]
        if before[0] != "–":
            yield [kind.title, "*pretrained body*", *before]


def use_differences(own: dict[Kind, pd.DataFrame]) -> dict[str, str]:
    """Each form minus FULL, and how far similarity and use go together over trainings."""
    lines: list[list[str]] = []
    said: list[str] = []
    for kind in KINDS[:3]:
        for variant in ("l2_sp", "hcs 0.8", *FORMS):
            found = [paired(own[kind], variant, "full", metric) for metric in USES]
            if any(found):
                lines.append([kind.title, variant, *map(signed, found)])
        for metric in ("probe_natural", "probe_medical", "corrupted_accuracy"):
            each = list(correlations(own[kind], metric))
            said += [f"- {kind.title}: {USES[metric]}: {mean(each):+.2f}"] if each else []
    return {"use_differences": body(lines), "use_correlations": "\n".join(said)}


def correlations(rows: pd.DataFrame, metric: str) -> Iterator[float]:
    """Spearman's between similarity and a number over the variants of each set, network and seed."""
    shown = rows[rows["variant"].isin(SHOWN)].sort_values("variant", key=lambda names: names.map(SHOWN.index), kind="stable")
    for _, own in shown.groupby(PLACE):
        points = own[["cka_debiased", metric]].dropna().to_numpy()
        if len(points) > 2:
            ranks = np.argsort(np.argsort(points, axis=0), axis=0)
            yield float(np.corrcoef(ranks.T)[0, 1])


def bought(own: dict[Kind, pd.DataFrame]) -> str:
    """What the similarity of the default buys, in words."""
    words = {
        "probe_natural": "less forgetting of natural images",
        "probe_medical": "features of more use for the other medical set",
        "corrupted_accuracy": "a higher accuracy on corrupted images",
    }
    lines: list[str] = []
    for kind, rows in own.items():
        gaps = {said: paired(rows, DEFAULT, "full", name) for name, said in words.items()}
        does = [said for said, gap in gaps.items() if gap.low > 0]
        costs = [said for said, gap in gaps.items() if gap.high < 0]
        open_ = [said for said in gaps if said not in (*does, *costs)]
        parts = [f"buys {', '.join(does)}" if does else "buys nothing that shows"]
        parts += [f"costs {', '.join(costs)}"] if costs else []
        parts += [f"not decided: {', '.join(open_)}"] if open_ else []
        lines.append(f"- {kind.title}: {'; '.join(parts)}.")
    return "\n".join(lines)


def beside_published(rows: pd.DataFrame) -> Lines:
    for variant, (accuracy, cka) in PAPER.items():
        for name in (DEFAULT, "paper", "batch") if variant == "repsim" else (variant,):
            here = [comparable(rows, name, metric) for metric in ("accuracy", "cka", "cka_debiased")]
            title = variant if name == variant else f"repsim ({name})"
            yield [title, f"{accuracy:.2f}", number(cka, ".2f"), *here]


def of_set(rows: pd.DataFrame) -> str:
    lines = [
        [model, variant, *(mean_and_interval(own[metric].dropna()) for metric in COLUMNS), seconds if seconds != "–" else "0"]
        for (model, variant), own in rows.groupby(["model", "variant"])
        if (seconds := median(own["cpu_seconds"].dropna(), ".0f"))
    ]
    return markdown(["Network", "Variant", *COLUMNS.values(), "CPU seconds"], lines)
