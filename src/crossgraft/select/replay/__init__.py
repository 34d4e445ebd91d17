"""A table of results replayed: what the rule of ``select`` would have handed over on each target, beside simpler ways."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.select.replay.regrets import ReplayResult as ReplayResult
    from crossgraft.select.replay.regrets import known_rows as known_rows
    from crossgraft.select.replay.regrets import replay as replay
    from crossgraft.select.replay.regrets import replay_published as replay_published

lazy_face(__name__)
