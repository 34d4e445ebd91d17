"""A command whose runs take as long as they are told, go on where they were stopped, and say how often they were begun."""

from crossgraft.options._option import option, options
from crossgraft.options.command import Command, Input
from crossgraft.options.running import Output, Seed, Terminal


@options
class ToilOptions(Output, Seed):
    """Options of ``toil``."""

    steps: int = option("Steps.", default=2)
    step_seconds: float = option("Seconds of each.", default=0.0, decides=False)
    bonus: float = option("Added to the value.", default=0.0)
    error: str | None = option("What it ends with.", default=None)
    die: bool = option("Kill its own process.", default=False)
    megabytes: int = option("Memory that it takes.", default=0)


COMMAND = Command(
    "toil",
    "Do nothing, for some time.",
    example="toil a",
    inputs=(Input("data", "A word."),),
    options=(ToilOptions, Terminal),
    verb="crossgraft_toy_jobs.verb:toil",
)
