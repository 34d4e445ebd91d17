"""Studies: the same command for many models, data sets, settings and seeds, on any machines."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.bench.engine import Engine as Engine
    from crossgraft.bench.engine import EngineRequest as EngineRequest
    from crossgraft.bench.engines import ENGINES as ENGINES
    from crossgraft.bench.result import StudyResult as StudyResult
    from crossgraft.bench.study import Study as Study
    from crossgraft.bench.study import read_study as read_study
    from crossgraft.bench.verb import run_study as run_study

lazy_face(__name__)
