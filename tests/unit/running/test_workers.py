import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from unittest.mock import Mock

import pytest

from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.running.jobs import Job, run_jobs, worker_pool

# Worker processes cannot import this file, so that the jobs are expressions for `eval`.


def test_results_come_in_the_order_of_the_jobs_from_workers_with_one_thread():
    script = sys.modules["__main__"]
    jobs = [
        "__import__('time').sleep(0.3) or 'slow'",
        "'fast'",
        "__import__('torch').get_num_threads()",
        "__import__('os').getpid()",
        "'script' if hasattr(__import__('sys').modules['__main__'], '__file__') else 'no script'",
        "__import__('signal').getsignal(__import__('signal').SIGINT) == __import__('signal').SIG_IGN",
        "sorted({'timm', 'sklearn'} & set(__import__('sys').modules))",
    ]
    with worker_pool(2) as pool:
        results = list(pool.map(eval, jobs))
        with pytest.raises(ZeroDivisionError):
            pool.submit(eval, "1 / 0").result()
        assert pool.submit(eval, "2").result() == 2, "a failed job does not end the workers"
    assert results[:3] == ["slow", "fast", 1]
    assert results[3] != os.getpid()
    assert results[4:] == ["no script", True, []]
    assert sys.modules["__main__"] is script


def test_a_worker_that_dies_is_a_named_error_and_the_others_go_on():
    with worker_pool(1) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        assert pool.submit(eval, "2").result() == 2


def test_a_sweep_whose_worker_dies_ends_with_a_named_error(monkeypatch):
    with worker_pool(1) as pool:
        submit = pool.submit
        monkeypatch.setattr(pool, "submit", lambda *_: submit(os._exit, 1))
        with pytest.raises(CrossgraftError, match="ended from outside"):
            run_jobs([Job(str(number), number) for number in range(3)], Mock(), keep_going=True, executor=pool)


def test_what_cannot_be_sent_is_a_named_error_and_the_workers_go_on():
    with worker_pool(1) as pool:
        for function, job in ((lambda job: job, 1), (len, [lambda: None])):
            with pytest.raises(UsageError, match=r"cannot be sent to them: .*--workers 1"):
                pool.submit(function, job).result()
        assert pool.submit(eval, "2").result() == 2


SCRIPT = """
from crossgraft.running.jobs import worker_pool

print("script starts")
with worker_pool(1) as pool:
    print([pool.submit(eval, "6 * 7").result()])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script without a guard", "standard input"])
def test_workers_start_without_a_guard_and_do_not_run_the_script_again(tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py" if how.startswith("script") else "-"]
    done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.stdout.splitlines() == ["script starts", "[42]"], done.stderr
