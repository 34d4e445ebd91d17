"""An executor that does each call at once, in this process."""

from concurrent.futures import Executor, Future


class Here(Executor):
    """Futures have their results when they are given."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
