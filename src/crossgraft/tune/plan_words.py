"""What a plan of fine-tuning says in words, on the terminal and in the report."""

from __future__ import annotations

from crossgraft.tune.plugins_record import PluginRecord
from crossgraft.tune.record import PlanRecord
from crossgraft.words.formatting import count, counted, duration, size, small_percent

_KINDS = {"regularizer": "regulariser"}  # options are spelled as in other tools, words as in these pages


_HARDLY = 0.005


def kind_in_words(plugin: PluginRecord) -> str:
    """What kind of plug-in it is.

    >>> kind_in_words(PluginRecord(kind="regularizer", spelling="repsim", title="RepSim"))
    'regulariser'
    """
    return _KINDS.get(plugin.kind, plugin.kind)


def adapters_in_words(plan: PlanRecord) -> str:
    """How large the adapters are, and beside what."""
    share = plan.num_adapter_parameters / (plan.num_trained + plan.num_frozen)
    parameters = counted(plan.num_adapter_parameters, "parameter")
    return f"{parameters}, {small_percent(share)} of the network, {size(plan.adapter_bytes)} on their own"


def own_in_words(plan: PlanRecord) -> str:
    """What regularisers learn beside the network, and what that takes of a step."""
    said = f"{counted(plan.num_own_parameters, 'parameter')} of their own, trained too"
    if plan.added_seconds_per_step is None or plan.seconds_per_step is None or plan.added_bytes is None:
        return said
    before = plan.seconds_per_step - plan.added_seconds_per_step
    share = plan.added_seconds_per_step / before if before > 0 else 1.0
    time = (
        f"about {duration(plan.added_seconds_per_step)} a step more ({small_percent(share)})"
        if share >= _HARDLY
        else "hardly any time"
    )
    return f"{said}; {time} and {size(max(plan.added_bytes, 0))} of memory"


def trained_in_words(plan: PlanRecord) -> str:
    """How many parameters are trained, of how many, and their share."""
    everything = plan.num_trained + plan.num_frozen
    return f"{count(plan.num_trained)} of {count(everything)} parameters trained ({small_percent(plan.num_trained / everything)})"


def memory_in_words(plan: PlanRecord) -> str:
    """The largest memory of training, or why it is not known."""
    return plan.peak_reason or "not measured" if plan.peak_bytes is None else f"about {size(plan.peak_bytes)}"
