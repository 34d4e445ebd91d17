"""The embedded demo: a toy zoo trained on this machine, ranked, and checked against real fine-tuning."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.demo.steps import run_demo as run_demo
    from crossgraft.demo.steps import write_demo as write_demo

lazy_face(__name__)
