"""What can be said, and the command, which imports nothing heavy."""

from crossgraft.options._option import option, options
from crossgraft.options.command import Command, Input
from crossgraft.options.data import SourceOptions
from crossgraft.options.running import Output, Terminal


@options
class DescribeOptions(Output, SourceOptions):
    """Options of ``describe``."""

    at_least: int = option("Leave out classes with fewer images.", default=0, least=0, is_common=True)


COMMAND = Command(
    "describe",
    "Count the images of each class.",
    example="describe digits",
    inputs=(Input("data", "Images."),),
    options=(DescribeOptions, Terminal),
    verb="crossgraft_describe.verb:describe",
)
