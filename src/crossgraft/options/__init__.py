"""What every option of every verb is made of; nothing here imports a network, an image or a command line."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.options._option import Option as Option
    from crossgraft.options._option import Options as Options
    from crossgraft.options._option import configuration as configuration
    from crossgraft.options._option import from_mapping as from_mapping
    from crossgraft.options._option import given as given
    from crossgraft.options._option import narrowed as narrowed
    from crossgraft.options._option import option as option
    from crossgraft.options._option import options as options
    from crossgraft.options._option import options_of as options_of
    from crossgraft.options._values import checked as checked
    from crossgraft.options._values import refuse_alone as refuse_alone
    from crossgraft.options._values import refuse_empty as refuse_empty
    from crossgraft.options._values import refuse_given as refuse_given
    from crossgraft.options._values import value_of as value_of
    from crossgraft.options.data import OpenOptions as OpenOptions
    from crossgraft.options.running import Debug as Debug
    from crossgraft.options.running import Json as Json
    from crossgraft.options.running import PageOptions as PageOptions
    from crossgraft.options.running import Quiet as Quiet
    from crossgraft.options.running import Terminal as Terminal

lazy_face(__name__)
