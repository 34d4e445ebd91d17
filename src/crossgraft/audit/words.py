"""What an audit found, in words."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.audit.record import AuditEntry, AuditMetric, AuditOutcome, AuditRecord, ReadableRow
from crossgraft.words.formatting import NumberFormat, joined

NUMBERS = NumberFormat(decimals=3)


OUTCOMES: dict[AuditOutcome, str] = {
    "relies": "relies on it",
    "sensitive": "sensitive to it",
    "passes": "passes",
    "undecided": "undecided",
    "undetectable": "not assessable: not seen by the network",
    "untrained": "not assessable: the model learned nothing",
    "impossible": "not measured",
}
"""Each outcome in a table."""


_CANNOT = "{{}} cannot be assessed ({}) with {{}}"
_SAID: dict[AuditOutcome, tuple[str, str]] = {
    "relies": ("{} relies on {}", "{} rely on {}"),
    "sensitive": ("{} is sensitive to {}", "{} are sensitive to {}"),
    "passes": ("{} passes with {}", "{} pass with {}"),
    "undecided": ("whether {} relies on {} is undecided", "whether {} rely on {} is undecided"),
    "undetectable": (_CANNOT.format("not seen by the network"), _CANNOT.format("not seen by the network")),
    "untrained": (_CANNOT.format("learned nothing"), _CANNOT.format("learned nothing")),
    "impossible": ("{} could not be measured with {}", "{} could not be measured with {}"),
}
"""One model or several, and what was put into the images."""


def answer_in_words(record: AuditRecord) -> str:
    """Which models rely on what, the worst news first."""
    if record.needs and not record.entries:
        return _planned(record)
    plain = [entry for entry in record.entries if entry.mitigation == "erm"]
    clauses: list[str] = []
    for outcome in OUTCOMES:
        of_it = [entry for entry in plain if entry.outcome == outcome]
        by_model: dict[str, list[str]] = {}
        for entry in of_it:
            by_model.setdefault(entry.model, []).append(entry.confounder)
        for confounders in dict.fromkeys(map(tuple, by_model.values())):
            models = [model for model, named in by_model.items() if tuple(named) == confounders]
            clauses.append(_SAID[outcome][len(models) > 1].format(joined(models), joined(confounders)))
    read = readable_in_words(record.readable)
    if read and not clauses:
        return read + _gates_in_words(record)
    said = "; ".join(clauses) if clauses else "nothing was asked"
    if said.startswith(("whether", "nothing")):  # a name of a model begins a sentence as it is written
        said = said[0].upper() + said[1:]
    alone = f" {plain[0].reason}" if len(plain) == 1 and (not plain[0].is_assessable or plain[0].outcome == "undecided") else ""
    return f"{said}{_worst_number(plain)}.{alone}" + (f" {read}" if read else "") + _gates_in_words(record)


def _worst_number(entries: Sequence[AuditEntry]) -> str:
    """The largest number of those with the worst outcome, with its interval; empty where none could be assessed."""
    assessable = [entry for entry in entries if entry.is_assessable]
    worst = min((list(OUTCOMES).index(entry.outcome) for entry in assessable), default=None)
    of_it = [entry for entry in assessable if list(OUTCOMES).index(entry.outcome) == worst]
    known = [(metric, entry) for entry in of_it if (metric := entry.metric(headline(entry)[1])) is not None]
    values = [(metric.value, metric, entry) for metric, entry in known if metric.value is not None]
    if not values:
        return ""
    value, metric, entry = max(values, key=lambda each: each[0])
    title, _ = headline(entry)
    if len(entries) > 1:
        return f". The largest {title} is {NUMBERS(value)}, of {entry.model} with {entry.confounder} ({_interval(metric)})"
    pull, moved = entry.metric("pull"), ""
    if entry.outcome in ("relies", "sensitive") and pull is not None and pull.value is not None:  # it decided, not the drop
        moved = f"it moves answers by {NUMBERS(pull.value)} standard deviations ({_interval(pull)}), "
    return f": {moved}{title} {NUMBERS(value)} ({_interval(metric)})"


def _interval(metric: AuditMetric) -> str:
    if metric.low is None or metric.high is None:
        return "no interval"
    return f"95\N{NO-BREAK SPACE}% interval {NUMBERS(metric.low)} to {NUMBERS(metric.high)}"


def readable_in_words(rows: Sequence[ReadableRow]) -> str:
    """What can be read from the features of each network, beside random weights; empty where nothing was asked."""
    sentences: list[str] = []
    for row in rows:
        if not row.features.startswith("features"):
            continue
        more, auc = row.more_than_random_weights, row.auc
        if auc.value is None:
            sentences.append(f"{row.said} was not read from {row.model}. {auc.no_interval_reason or ''}".strip())
            continue
        if auc.low is None or auc.low <= 0.5:
            chance = "not told from" if auc.low is None or auc.high is None or auc.high >= 0.5 else "below"
            where = f"{row.features} of {row.model}"
            sentences.append(f"Nothing shows that {row.said} can be read from {where}: AUC {auc.value:.2f}, {chance} chance.")
            continue
        if more is None or more.low is None or more.high is None:
            verdict = "above chance"
        elif more.low > 0:
            verdict = "surely more than from random weights"
        else:
            verdict = f"above chance, {'and less than' if more.high < 0 else 'but not told'} from random weights"
        of_class = row.more_than_class
        if of_class is not None and (of_class.low is None or of_class.low <= 0):
            verdict += ", nor" if "not told" in verdict else ", but not told"
            verdict += " from what the class alone says"
        sentences.append(f"{row.said} can be read from {row.features} of {row.model} at AUC {auc.value:.2f}: {verdict}.")
    return " ".join(sentences)


def _planned(record: AuditRecord) -> str:
    """Whether there are as many images as verdicts need."""
    short = list(dict.fromkeys(each.confounder for each in record.needs if each.available < each.needed))
    if not short:
        return "There are as many images as a verdict needs."
    return f"There may be too few images for a verdict on {joined(short)}."


def _gates_in_words(record: AuditRecord) -> str:
    """What ``--fail-on`` found, condition by condition."""
    sentences = ""
    for state, one, several in (
        ("failed", "holds", "hold"),
        ("not assessable", "cannot be assessed", "cannot be assessed"),
        ("passed", "does not hold", "do not hold"),
    ):
        gates = [gate for gate in record.gates if gate.state == state]
        if gates:
            what = f"The condition {gates[0].condition}" if len(gates) == 1 else f"{len(gates)} conditions"
            sentences += f" {what} of --fail-on {one if len(gates) == 1 else several}."
    return sentences


def least_reliant(record: AuditRecord) -> list[str]:
    """Per confounder, the model that relies least, and those that the test images do not tell from it."""
    sentences: list[str] = []
    for confounder in dict.fromkeys(each.confounder for each in record.differences):
        beside = [each for each in record.differences if each.confounder == confounder]
        alike = [each.model for each in beside if (low := each.reliance.patients_low) is None or low <= 0]
        name = beside[0].reference
        if not alike:
            others = "the other model" if len(beside) == 1 else f"the {len(beside)} other models"
            text = f"{name} relies on {confounder} less than {others}."
        elif len(alike) == len(beside):
            text = f"{name} has the smallest SRI with {confounder}, but no interval tells another model from it."
        else:
            text = f"{name} relies least on {confounder}. Not told from it: {joined(alike)}."
        sentences.append(text)
    return sentences


def headline(entry: AuditEntry) -> tuple[str, str]:
    """Name and key of the number that an entry is about."""
    if entry.mode == "trained":
        return "AUC drop", "auc_drop"
    return "SRI", "shortcut_reliance_index"
