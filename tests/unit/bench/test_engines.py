"""Engines, where what they stand on answers wrongly."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from crossgraft.bench.engine import EngineRequest
from crossgraft.bench.engines import slurm
from crossgraft.errors import MissingError, UsageError


class Executor:
    """Of submitit, with a task whose answer is damaged."""

    def __init__(self, folder, **_):
        self.answer = folder / "answer"
        self.answer.touch()

    def batch(self):
        return nullcontext()

    def submit(self, *_, **__):
        def damaged():
            raise EOFError("Ran out of input")

        return SimpleNamespace(job_id="7", paths=SimpleNamespace(result_pickle=self.answer), _get_outcome_and_result=damaged)

    def update_parameters(self, *, cpus_per_task, additional_parameters, time, job_name, array_parallelism=None):
        pass


def test_an_answer_that_cannot_be_read_is_an_error_of_its_job_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(slurm, "_queued", set)
    arrays = slurm.Arrays(Executor(tmp_path))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="answer of task 7 cannot be read: Ran out of input"):
            arrays.submit(len, "a").result(timeout=10)
    arrays.shutdown()


@pytest.mark.parametrize(
    ("error", "said"), [(OSError("no controller"), "OSError: no controller"), (KeyError("job"), "KeyError: 'job'")]
)
def test_what_is_not_submitted_is_told_by_the_kind_of_its_error(tmp_path, monkeypatch, error, said):
    def fails():
        raise error

    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.01)
    executor = Executor(tmp_path)
    executor.batch = fails
    arrays = slurm.Arrays(executor)
    with pytest.raises(MissingError, match=f"SLURM took no job: {said}"):
        arrays.submit(len, "a").result(timeout=10)
    arrays.shutdown()


@pytest.mark.parametrize("parameters", [{"cpus_per_task": "2"}, {"additional_parameters": "x"}, {"partitoin": "gpu"}])
def test_a_parameter_that_slurm_does_not_take_is_refused(tmp_path, monkeypatch, parameters):
    monkeypatch.setattr(slurm, "require", lambda *_, **__: SimpleNamespace(SlurmExecutor=Executor))
    monkeypatch.setattr(slurm.shutil, "which", lambda _: "sbatch")
    (tmp_path / "slurm").mkdir()
    with pytest.raises(UsageError, match="--engine-option: "), slurm.open_slurm(EngineRequest(1, 1, tmp_path, None, parameters)):
        pass
