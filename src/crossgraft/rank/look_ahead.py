"""Features of the next member are computed while the last one is scored, where the device is not the CPU that scores."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import NamedTuple

from crossgraft.features import FeatureSet
from crossgraft.models import Backbone
from crossgraft.progress import Reporter, Stage
from crossgraft.rank.zoo import Member, Zoo

_WAIT_SECONDS = 0.2  # so that Ctrl-C is seen while this thread waits
_WARNING = "Warning: "


def helps(device: str) -> bool:
    """Whether networks leave the cores to the scores."""
    return not device.startswith("cpu")


class LookedAhead(NamedTuple):
    """A backbone and what it says of all images."""

    backbone: Backbone
    features: FeatureSet


class LookAhead:
    """Loads and looks with one member in advance, in a thread of its own.

    On a CPU it does nothing, because a network takes all cores there. What it has to say comes when its member is asked for, in
    the place where it would have been said; so do its errors. Seconds and memory of scores that are measured meanwhile are those
    of a busy machine.

    Args:
        zoo: What the members are looked at with.
        members: In the order in which they are asked for, with their positions in messages.
    """

    def __init__(self, zoo: Zoo, members: Sequence[tuple[Member, str]]) -> None:
        self.zoo = zoo
        self._left = list(members)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="look-ahead") if helps(zoo.device) else None
        self._next: tuple[str, Future[LookedAhead], _Deferred] | None = None

    def begin(self) -> None:
        """Begin with the first member that was not asked for yet, unless it was begun."""
        if self._pool is None or self._next is not None or not self._left:
            return
        member, position = self._left[0]
        reporter = _Deferred(quiet=self.zoo.reporter.quiet)
        self._next = member.spec.name, self._pool.submit(self._look, member, position, reporter), reporter

    def take(self, name: str) -> LookedAhead | None:
        """What was begun with this member, once it is done; None where it was not begun.

        Raises: As loading and extraction.
        """
        self._left = [(member, position) for member, position in self._left if member.spec.name != name]
        if self._next is None or self._next[0] != name:
            return None
        (_, future, reporter), self._next = self._next, None
        while not wait([future], timeout=_WAIT_SECONDS).done:
            pass
        reporter.tell(self.zoo.reporter)
        return future.result()

    def close(self) -> None:
        """End what is under way, at the next batch."""
        if self._pool is not None:
            if self._next is not None:
                self._next[2].stopped.set()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _look(self, member: Member, position: str, reporter: Reporter) -> LookedAhead:
        backbone = self.zoo.load(member.spec)
        return LookedAhead(backbone, self.zoo.extract(backbone, position, reporter=reporter))


class _Deferred(Reporter):
    """Keeps what is said for later, and ends the work when it is to stop."""

    def __init__(self, *, quiet: bool) -> None:
        self.stopped = threading.Event()
        self._lines = io.StringIO()
        super().__init__(self._lines, quiet=quiet)

    @contextmanager
    def stage(
        self, title: str, *, total: int | None = None, unit: str = "images", below: Callable[[], Sequence[str]] | None = None
    ) -> Generator[Stage]:
        """As of every reporter."""
        with super().stage(title, total=total, unit=unit, below=below) as stage:
            yield _Stoppable(stage, self.stopped)

    def tell(self, reporter: Reporter) -> None:
        """Pass on what was said."""
        for line in self._lines.getvalue().splitlines():
            if line.startswith(_WARNING):
                reporter.warn(line.removeprefix(_WARNING))
            else:
                reporter.mention(line)


class _Stoppable:
    def __init__(self, stage: Stage, stopped: threading.Event) -> None:
        self._stage, self._stopped = stage, stopped

    def advance(self, amount: int = 1) -> None:
        """Count units, unless the work is to stop."""
        if self._stopped.is_set():
            raise CancelledError
        self._stage.advance(amount)

    def note(self, text: str) -> None:
        """Passed on."""
        self._stage.note(text)


@contextmanager
def looking_ahead(zoo: Zoo, members: Sequence[tuple[Member, str]]) -> Generator[LookAhead]:
    """A look-ahead that ends with the block, whatever ends that."""
    ahead = LookAhead(zoo, members)
    try:
        yield ahead
    finally:
        ahead.close()
