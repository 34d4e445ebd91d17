"""Run directories, resumable and never half-written, and the store of known results."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.running.command_line import open_command_run as open_command_run
    from crossgraft.running.publishing import publish as publish
    from crossgraft.running.publishing import write_report as write_report
    from crossgraft.running.run_directory import RunDirectory as RunDirectory
    from crossgraft.running.run_directory import open_run as open_run
    from crossgraft.running.verb import PAGE_FILE as PAGE_FILE
    from crossgraft.running.verb import THUMBNAILS_FILE as THUMBNAILS_FILE
    from crossgraft.running.verb import Publish as Publish
    from crossgraft.running.verb import Run as Run
    from crossgraft.running.verb import verb as verb
    from crossgraft.storage.atomic import write_atomically as write_atomically

lazy_face(__name__)
