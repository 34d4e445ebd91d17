"""``fine_tune``: labelled images and one pretrained model in, a fine-tuned model with honest numbers out."""

from __future__ import annotations

from pathlib import Path

from crossgraft.data import Dataset
from crossgraft.data.opening import data_errors_first
from crossgraft.running.verb import Run, verb
from crossgraft.tune.forecast import seconds_of_measuring
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.edited_rows import edit_rows, read_edits
from crossgraft.tune.planning.fold_networks import model_of
from crossgraft.tune.planning.plan import Plan, make_plan
from crossgraft.tune.planning.preparation import Request, prepare, read_names
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.result import FineTuningResult, look_at_known_results
from crossgraft.tune.tracking import open_tracking
from crossgraft.tune.trainings import train_and_evaluate


@verb("tune", TuneOptions)
def fine_tune(data: str | Path | Dataset, options: TuneOptions, run: Run) -> FineTuningResult:
    """Fine-tune a pretrained model, and measure it on held-out images.

    Uses the splits train, val and test of the data. A missing test part is a fifth of the rows, a missing val part a fifth of
    the others; groups stay together. Val picks epoch and grid point, and temperature and threshold are fitted to it; test is
    looked at once, at the very end. The same call with the same ``out`` goes on where it was stopped.

    What is left open follows from method, network and number of images, see ``tune.planning.choices.choose_settings``: AdamW, a
    cosine after 5 warm-up epochs (at most a tenth), weight decay 0.05, about 600 steps in 10 to 50 epochs, batches of 8 to
    128 images, and a learning rate between 1e-4 and 3e-3. Beside RepSim or HCS a network with BatchNorm has a smaller one in
    fewer than 100 steps, and its head is trained first, see ``tune.planning.batch_norm``. ``plan=True`` shows the choices without
    a step.

    With ``edits``, images are edited before anything else sees them, as ``edit_data`` would; ``predict`` edits nothing.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

    Returns:
        Every number, and with ``out`` the folder ``model`` that ``predict`` uses, ``report.html``, ``history.csv``,
        ``metrics.csv`` and ``predictions.csv`` there.

    Raises:
        DataError: Something is wrong with the images or labels, or there are too few for a part.
        UsageError: An argument is wrong or contradicts another; the message gives the reason.
        UntrustedCodeError: A zoo file names a function that nobody allowed.
        UnknownNameError: A name is not known, for example of a method.
        MissingWeightsError: Weights are not on this machine.
        DivergedError: A loss or a gradient is not finite.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        Each step is about three forward passes of its images; the plan says how long all of it takes.
    """
    options, edits = read_edits(options)
    points, adapter = read_names(options)
    with data_errors_first(data, options):
        spec = model_of(options)
    request = Request(options, spec, points, adapter)
    tracking = open_tracking(options.track, run.reporter)
    if options.store and not options.plan:
        look_at_known_results(run.reporter)
    location = data.name if isinstance(data, Dataset) else data
    out = None if options.plan else options.out
    with run.directory(location, typed=request.typed(), resolved=request.resolved(), out=out) as directory:
        rows = open_rows(data, options, run.reporter)
        rows = edit_rows(rows, edits, options, run.reporter)
        prepared = prepare(rows, request, run=directory, reporter=run.reporter)
        plan = make_plan(prepared, run=directory, reporter=run.reporter)
        if options.plan:
            beside = seconds_of_measuring(prepared) + run.seconds_beside
            return FineTuningResult(plan=Plan(plan.record.model_copy(update={"seconds_beside": beside})))
        return train_and_evaluate(prepared, plan, run=directory, tracking=tracking, reporter=run.reporter)
