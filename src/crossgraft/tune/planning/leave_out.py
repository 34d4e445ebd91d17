"""Which images train, pick and measure where whole domains are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Shaped

from crossgraft.data import Dataset, Split
from crossgraft.data.domains import Domains
from crossgraft.data.selection import TEST_SHARE, draw_part
from crossgraft.data.splits import PARTS, Part, split_of
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.options.data import VAL_SHARE
from crossgraft.progress import Reporter
from crossgraft.running.command_line import portable_name
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows, LeftOut, TuningRows, drawn_by
from crossgraft.words.formatting import count, counted, joined

EACH = "each"
"""Value of ``--leave-out`` that stands for every domain in turn."""
SEEN = "seen"
"""Part of images of training domains that are only measured on."""

ORACLE = "Oracle, an upper bound and no result: models were picked on images of the domain that they are tested on."
ORACLE_MARK = " (oracle)"

PartNames = Shaped[np.ndarray, " num_rows"]

_NOT_BESIDE = {
    "folds": "both say which images are tested. Give one of them",
    "fold": "there are no folds. Leave --fold out",
    "limit": "it would choose among all images by the labels of the domain that is left out, too. Leave it out, or give "
    "--per-class, which takes training images only",
    "class_shares": "it would choose among all images by the labels of the domain that is left out, too. Leave it out",
    "pair_by": "it would choose among all images by the labels of the domain that is left out, too. Leave it out",
    "edits": "images of all domains would be edited in one go. Edit them first (crossgraft edit), and tune with the result",
}
"""Option → why it does not go with ``--leave-out``, and what to do."""


def refuse_beside_leave_out(options: TuneOptions) -> None:
    """Raise for options that mean nothing, or something else, where a domain is left out.

    Raises:
        UsageError: With what to do instead.
    """
    if options.leave_out is None:
        return
    for name, why in _NOT_BESIDE.items():
        if getattr(options, name) not in (None, ()):
            flag = "--with" if name == "edits" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} does not go with --leave-out: {why}.")
    if options.oracle and options.val_fraction == 0:
        raise UsageError(
            "--oracle picks on a share of the images that are left out, and --val-fraction 0 takes none of them. Leave one out."
        )


@dataclass(frozen=True, eq=False)
class _Trained:
    """The part that each image has in the trainings that see its domain: train, val, seen, or nothing.

    Attributes:
        part_of_row: (n,) that part.
        used: (n,) whether the row is in any part; rows of other splits of the data are not.
        origins: Part → where its rows come from, in words.
    """

    part_of_row: PartNames
    used: Bool[np.ndarray, " num_rows"]
    origins: dict[str, str]


def leave_domains_out(dataset: Dataset, domains: Domains, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """The parts of each training, which sees no image of one domain.

    Each training domain is divided by itself, and in the same way whatever is left out: a share is ``seen``, which nothing is
    fitted to or picked on, and a share of the others is val. So what becomes of an image follows from the images of its own
    domain alone. A group (patient) with images in several domains has the part that it drew in the first of them; where one of
    its domains is left out, its other images are in no part. Parts that came with the data, or were saved, are kept instead:
    test is ``seen`` then, and all images of the domain that is left out are tested.

    Args:
        dataset: All rows, with the split that they came with, if any.
        domains: Where each comes from.
        options: Options of ``fine_tune``, with ``leave_out``.
        reporter: Receiver of what is left out.

    Raises:
        UnknownNameError: There is no such domain.
        DataError: The groups are the domains, no image of any domain can be val, a class is nowhere else, or nothing is left.
        UsageError: A share contradicts the split of the data.
    """
    asked = str(options.leave_out)
    left_out = _asked_domains(domains, asked, dataset.name)
    _refuse_groups_that_are_domains(dataset, domains)
    trained = _divide(dataset, domains, options)
    parts = [_without(dataset, domains, trained, domain, options) for domain in left_out]
    if options.val_fraction > 0 and not options.oracle:
        _tell_of_missing_val(dataset, domains, trained.part_of_row, parts, reporter)
    _tell_of_excluded(dataset, parts, reporter)
    origins = {**trained.origins, "test": f"all images of the {domains.column} that is left out"}
    if options.oracle:
        share = f"{options.val_fraction:.0%} of the images of the {domains.column} that is left out"
        origins |= {
            "val": f"{share}, {drawn_by(dataset)} (oracle)",
            "test": f"the other images of the {domains.column} that is left out",
        }
    about = LeftOut(domains.column, domains.names, asked, is_each=asked == EACH, is_oracle=options.oracle)
    if about.is_each:
        numbered = tuple(replace(fold, fold=number) for number, fold in enumerate(parts))
        return TuningRows(replace(dataset, splits=None, split=None), numbered, origins, domains=domains, left_out=about)
    return TuningRows(with_split(dataset, parts[0], origins), tuple(parts), origins, domains=domains, left_out=about)


def with_split(dataset: Dataset, parts: FoldRows, origins: dict[str, str]) -> Dataset:
    """The data with the parts of one training as their split; images that are seen, or in no part, are in none of its three."""
    names = parts.of_rows(len(dataset))
    names_and_seen = names.copy()
    names_and_seen[parts.seen] = SEEN
    kept: dict[Part, str] = {part: origins[part] for part in PARTS}
    method = "; ".join(f"{part}: {origin}" for part, origin in kept.items())
    listed = dataset.whole_listing
    of_listed = np.full(listed.num_rows, "", dtype=names.dtype)  # an unreadable image is in no part
    of_listed[listed.kept] = names
    split = split_of(of_listed, listed.listing_fingerprint, method, None, origins=kept)
    split = split.model_copy(update={"rows_fingerprint": listed.rows_fingerprint})
    known = dataset.fingerprint_of_split(parts.train)
    return replace(dataset, splits=names_and_seen, split=split, split_fingerprint=known)


def _asked_domains(domains: Domains, asked: str, data: str) -> list[str]:
    if asked != EACH:
        if asked not in domains.names:
            raise UnknownNameError(f"{domains.column} of {data}", asked, domains.names, hint=f"{EACH}: every one in turn.")
        return [asked]
    if EACH in domains.names:
        raise DataError(f"One {domains.column} of {data} is called {EACH}, which --leave-out takes for all of them. Rename it.")
    folders: dict[str, str] = {}
    for name in domains.names:
        twin = folders.setdefault(portable_name(name).casefold(), name)
        if twin != name:
            raise DataError(
                f"The names {twin} and {name} of {domains.column} are one and the same as names of folders. Rename one of them."
            )
    return list(domains.names)


def _refuse_groups_that_are_domains(dataset: Dataset, domains: Domains) -> None:
    if dataset.groups is None:
        return
    codes = np.unique(dataset.groups, return_inverse=True)[1]
    pairs = np.unique(np.stack([codes, domains.index]), axis=1).shape[1]
    if pairs == codes.max() + 1 == len(domains.names):
        raise DataError(
            f"Each {domains.column} of {dataset.name} is one group ({dataset.group_column}), whose images stay together, so none "
            "of a training domain could pick the model. Give a finer group, such as the patient, or --group-column none."
        )


def _divide(dataset: Dataset, domains: Domains, options: TuneOptions) -> _Trained:
    given, how = dataset.splits, drawn_by(dataset)
    parts = np.full(len(dataset), "train", dtype="U5")
    used = np.ones(len(dataset), dtype=bool)
    origins = {"train": "all other images of the other domains", "val": "none", SEEN: "none"}
    shares = {SEEN: TEST_SHARE if options.holdout is None else options.holdout, "val": options.val_fraction}
    if given is not None:
        parts, used, origins = _given_parts(dataset, given, options)
        shares = {part: share for part, share in shares.items() if not (parts == part).any()}
    if options.oracle:
        shares["val"] = shares.get("val", 0.0)  # training images are the same, whatever picks the model
    home = _first_domains(dataset, domains)
    for part, share in shares.items():
        if share <= 0:
            continue
        whole = "each other domain" if given is None else "the training rows of each other domain"
        origins[part] = f"{share:.0%} of {whole}{'' if part == SEEN else ' outside seen'}, {how}"
        for number, name in enumerate(domains.names):
            rows = np.flatnonzero((home == number) & (parts == "train") & used)
            purpose = f"{part} of {domains.column} {name}"
            if rows.size:
                drawn = draw_part(
                    dataset.targets,
                    dataset.groups,
                    rows,
                    share,
                    seed=options.seed,
                    purpose=purpose,
                    class_names=dataset.class_names,
                )[1]
                parts[_whole_groups(dataset, drawn) & (parts == "train") & used] = part
    return _Trained(parts, used, origins)


def _given_parts(dataset: Dataset, given: PartNames, options: TuneOptions) -> tuple[PartNames, np.ndarray, dict[str, str]]:
    """Parts that the data have, test as seen."""
    if options.holdout is not None:
        raise UsageError(f"{dataset.name} has a split of its own, which is kept: its test images are seen. Leave out --holdout.")
    if not (given == "train").any():
        names = ", ".join(sorted({str(name) for name in given} - {""}))
        raise DataError(f"{dataset.name} has the splits {names} but no split train, so there is nothing to train on.")
    num_val = int((given == "val").sum())
    if num_val and options.val_fraction != VAL_SHARE and not options.oracle:
        raise UsageError(
            f"--val-fraction {options.val_fraction:g} is for data without val rows, and {dataset.name} has {num_val}, which are "
            "kept. Leave --val-fraction out."
        )
    parts = np.where(given == "test", SEEN, given).astype("U5")
    split = dataset.split
    known = split.origins if isinstance(split, Split) else {}
    origin = {part: str(known.get(part, "given with the data" if split is None else dataset.split_method)) for part in PARTS}
    origins = {part: f"the {name} rows of the other domains, {origin[name]}" for part, name in _GIVEN_AS.items()}
    return parts, np.isin(given, PARTS), origins


_GIVEN_AS = {"train": "train", "val": "val", SEEN: "test"}
"""Part of a training → part of the data."""


def _first_domains(dataset: Dataset, domains: Domains) -> np.ndarray:
    """(n,) the first domain in which the group of each row has an image."""
    if dataset.groups is None:
        return domains.index
    codes = np.unique(dataset.groups, return_inverse=True)[1]
    first = np.full(codes.max() + 1, len(domains.names))
    np.minimum.at(first, codes, domains.index)
    # A row of a group that began elsewhere follows what was drawn there, and is drawn with nobody here.
    return np.where(first[codes] == domains.index, domains.index, -1)


def _whole_groups(dataset: Dataset, rows: np.ndarray) -> Bool[np.ndarray, " num_rows"]:
    """(n,) whether each row is one of these, or of a group of one of them."""
    chosen = np.zeros(len(dataset), dtype=bool)
    chosen[rows] = True
    return chosen if dataset.groups is None else np.isin(dataset.groups, np.unique(dataset.groups[rows]))


def _without(dataset: Dataset, domains: Domains, trained: _Trained, domain: str, options: TuneOptions) -> FoldRows:
    """The parts of the training that sees nothing of ``domain``."""
    unseen = (domains.index == domains.names.index(domain)) & trained.used
    excluded = np.zeros(len(dataset), dtype=bool)
    if dataset.groups is not None:
        excluded = np.isin(dataset.groups, np.unique(dataset.groups[unseen])) & ~unseen & trained.used
    free = trained.used & ~unseen & ~excluded
    train, val, seen = (np.flatnonzero(free & (trained.part_of_row == part)) for part in ("train", "val", SEEN))
    test = np.flatnonzero(unseen)
    if options.oracle:
        purpose = f"val of {domains.column} {domain} (oracle)"
        test, val = draw_part(
            dataset.targets,
            dataset.groups,
            test,
            options.val_fraction,
            seed=options.seed,
            purpose=purpose,
            class_names=dataset.class_names,
        )
        if not val.size:
            raise DataError(
                f"--oracle picks on images of {domains.column} {domain}, but none of its {len(test)} can be set apart: a class "
                "needs two images, or patients, there. Leave out --oracle."
            )
    parts = FoldRows(train, val, test, seen=seen, domain=domain, num_excluded=int(excluded.sum()))
    _refuse_missing_classes(dataset, domains, parts)
    return parts


def _refuse_missing_classes(dataset: Dataset, domains: Domains, parts: FoldRows) -> None:
    """A class that only the domain that is left out has cannot be learned from the others."""
    domain = str(parts.domain)
    if parts.train.size == 0:
        none_left = f"Without {domains.column} {domain} no image of {dataset.name} is left to train on"
        if parts.num_excluded:
            raise DataError(
                f"{none_left}: {counted(parts.num_excluded, 'image')} of other domains had to go, because the same "
                f"{dataset.group_column} has images there, too. Leave another one out, or see whether {dataset.group_column} is "
                "the column of patients (--group-column)."
            )
        raise DataError(f"{none_left}. Leave another one out, or give images of more domains.")
    only_there = _classes_of_one_domain(dataset, domains)
    if name := next(iter(only_there.get(domain, [])), None):
        members = dataset.members(dataset.class_names.index(name))
        others = [other for other in domains.names if other not in only_there]
        instead = f", or leave out another domain: --leave-out with one of {joined(others)}" if others else ""
        noun = dataset.task.noun
        raise DataError(
            f"Only {domains.column} {domain} has images of the {noun} {name} ({counted(int(members.sum()), 'image')}), so "
            f"without it nothing can learn to tell it. Leave out images of {name}, join it with another {noun}{instead}."
        )


def _classes_of_one_domain(dataset: Dataset, domains: Domains) -> dict[str, list[str]]:
    """Domain → classes that no other domain has an image of."""
    found: dict[str, list[str]] = {}
    for index, name in enumerate(dataset.class_names):
        if len(places := np.unique(domains.index[dataset.members(index)])) == 1:
            found.setdefault(domains.names[places[0]], []).append(name)
    return found


def _tell_of_missing_val(
    dataset: Dataset, domains: Domains, part_of_row: PartNames, parts: Sequence[FoldRows], reporter: Reporter
) -> None:
    """Name the training domains without an image in val.

    Raises:
        DataError: Some training has no val at all.
    """
    for fold in parts:
        if fold.val.size == 0:
            raise DataError(
                f"Without {domains.column} {fold.domain} no image of {dataset.name} can pick the model: in no other domain has a "
                "class two images, or patients, of which one could be val. Give more images, or --val-fraction 0, which keeps "
                "the last epoch."
            )
    sizes = [
        f"{name} ({counted(int((domains.index == place).sum()), 'image')})"
        for place, name in enumerate(domains.names)
        if not ((domains.index == place) & (part_of_row == "val")).any() and any(fold.domain != name for fold in parts)
    ]
    if sizes:
        reporter.warn(
            f"Too small for a share in val: {domains.column} {joined(sizes)}. The model is picked on images of the other domains."
        )


def _tell_of_excluded(dataset: Dataset, parts: Sequence[FoldRows], reporter: Reporter) -> None:
    """Count images of groups that have others in the domain that is left out."""
    some = [f"{counted(fold.num_excluded, 'image')} without {fold.domain}" for fold in parts if fold.num_excluded]
    if some:
        reporter.warn(
            f"Left out of training: {joined(some)}, because the same {dataset.group_column} has images in the domain that is "
            "left out, too."
        )


def left_out_in_words(rows: TuningRows) -> list[str]:
    """What no training sees, and what is only measured, for a plan."""
    about = rows.left_out
    if about is None:
        return []
    seen = [len(fold.seen) for fold in rows.parts]
    number = count(seen[0]) if len(set(seen)) == 1 else f"{count(min(seen))} to {count(max(seen))}"
    apart = f" {number} images of the others are only measured, for the gap." if max(seen) else ""
    if about.is_each:
        what = f"Each of {counted(len(rows.parts), 'training')} leaves out one {about.column}: {joined(about.names)}."
    else:
        what = f"No image of {about.column} {about.asked} trains the model."
    own = "What was left open is chosen for each training by its own images, as if it were alone."
    return [*([ORACLE] if about.is_oracle else []), what + apart, *([own] if about.is_each else [])]
