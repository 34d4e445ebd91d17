"""The embedded demo: real networks from the first check to a model in use; or toy networks that are trained on this machine."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.demo.steps import run_demo as run_demo
    from crossgraft.demo.steps import write_demo as write_demo
    from crossgraft.demo.story import show_demo as show_demo

lazy_face(__name__)
