"""Fine-tuning as a scikit-learn classifier: ``fit``, ``predict``, ``predict_proba``, ``score``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Float
from PIL.Image import Image as Picture
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from crossgraft.compute import available_cores, limit_threads, reuse_freed_memory
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.given_images import images_of_arrays
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.options._option import from_mapping, options_of
from crossgraft.options._values import value_of
from crossgraft.options.data import VAL_SHARE
from crossgraft.progress import Reporter
from crossgraft.running.jobs import results_of
from crossgraft.tasks import Task, task_of
from crossgraft.tune.assemble import batch_norm_record, keep_record
from crossgraft.tune.jobs import TrainingWork, pick, trained_network
from crossgraft.tune.keep_search import run_trainings
from crossgraft.tune.measuring.evaluation import calibrate
from crossgraft.tune.measuring.logits import compute_logits
from crossgraft.tune.options import FitOptions, TuneOptions
from crossgraft.tune.planning.plan import make_plan
from crossgraft.tune.planning.preparation import Preparation, Request, prepare
from crossgraft.tune.planning.rows import training_rows
from crossgraft.tune.result import epoch_frame
from crossgraft.tune.words import missed_in_words

ValueRange = tuple[float, float] | Literal["fit"] | None


def holds_images(X: Any) -> bool:
    """Whether ``X`` is images; otherwise it is what scikit-learn calls samples and features, or nothing of use."""
    if isinstance(X, np.ndarray):
        return X.ndim > 2
    if hasattr(X, "shape") or not isinstance(X, Sequence) or not len(X):  # a DataFrame, a sparse matrix, text, a number
        return False
    return isinstance(X[0], Picture) or np.ndim(X[0]) > 1


def shape_of_rows(num_features: int, image_shape: Sequence[int] | None) -> tuple[int, ...]:
    """Shape of the image that a row of so many numbers holds, (height, width) or (height, width, channels).

    Args:
        num_features: Numbers of a row.
        image_shape: As ``FineTunedClassifier`` takes it; None: a square, grey or of three channels.

    Raises:
        DataError: No such image has so many numbers.
        UsageError: ``image_shape`` is none.
    """
    if image_shape is None:
        return _square(num_features)
    shape = tuple(image_shape)
    open_sides, known = shape.count(-1), math.prod(side for side in shape if side != -1)
    if len(shape) not in (2, 3) or open_sides > 1 or known < 1 or any(side < 1 and side != -1 for side in shape):
        raise UsageError(
            f"image_shape is (height, width) or (height, width, channels), one of them perhaps -1; found {image_shape}."
        )
    if num_features % known or (not open_sides and num_features != known):
        raise DataError(f"Rows of {num_features} feature(s) are no images of the shape {shape}. Change image_shape.")
    return tuple(num_features // known if side == -1 else side for side in shape)


def _square(num_features: int) -> tuple[int, ...]:
    for channels in (1, 3):
        side = math.isqrt(num_features // channels)
        if side * side * channels == num_features:
            return (side, side) if channels == 1 else (side, side, channels)
    raise DataError(
        f"Rows of {num_features} feature(s) are no square images, grey or of three channels. Say their shape with "
        "image_shape=(height, width) or (height, width, channels)."
    )


def fitted_range(images: Any, value_range: object) -> tuple[float, float] | None:
    """Values of black and white; ``fit``: the smallest and largest of these images.

    Raises:
        UsageError: They are not two numbers in order.
    """
    if value_range is None:
        return None
    if isinstance(value_range, str):
        if value_range != "fit":
            raise UsageError(f"value_range is two numbers or the word fit, found {value_range!r}.")
        low = min(float(np.min(image)) for image in images)
        high = max(float(np.max(image)) for image in images)
        return low, high if high > low else low + 1
    try:
        low, high = map(float, cast("Sequence[float]", value_range))
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"value_range is the values of black and white, the smaller one first; found {value_range!r}.")
    return low, high


def in_unit_range(images: Any, value_range: tuple[float, float] | None) -> Any:
    """``images`` with black at 0 and white at 1, what lies beyond cut off; None: as they are."""
    if value_range is None:
        return images
    low, high = value_range
    if isinstance(images, np.ndarray):
        return np.clip((images.astype(np.float64) - low) / (high - low), 0, 1).astype(np.float32)
    return [in_unit_range(np.asarray(image), value_range) for image in images]


Images = Sequence[np.ndarray] | np.ndarray


class FineTunedClassifier(ClassifierMixin, BaseEstimator):
    """A pretrained network that is fine-tuned by ``fit``.

    Works wherever scikit-learn takes a classifier, for example in ``cross_val_score``. All images that ``fit`` is given are
    used for training, but for the share ``val_fraction``, which picks the epoch and calibrates the probabilities; how good the
    model is has to be measured on other images. To have that done, with intervals and a report, call ``fine_tune``.

    Args:
        model: Name, checkpoint path, ``package.module:factory``, or a ``ModelSpec``.
        method: What is trained: ``full``, ``linear``, ``partial:3`` …
        regularizer: What is added to the loss, for example ``l2_sp:alpha=0.1``.
        augmentation: What is done to an image; ``light`` by default.
        epochs: Passes over the training images, at most.
        learning_rate: The largest, after warm-up.
        batch_size: Images of one step.
        val_fraction: Share of the images that picks the epoch; groups stay together. 0: the last epoch is kept, and
            probabilities are not calibrated.
        image_size: Side of the input in pixels, instead of the model's own.
        image_shape: Shape of the image in a row of a two-dimensional ``X``: (height, width) or (height, width, channels), one
            of them perhaps -1 for what is left. By default a square, grey or of three channels.
        value_range: Values that become black and white, what lies beyond is cut off: two numbers, or ``fit`` for the smallest
            and largest that ``fit`` sees. By default those of the type: 255 for uint8, 65535 for uint16, 1 for floats.
        seed: Random seed.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        workers: Threads; one per core by default.
        options: Further arguments of ``fine_tune`` by name, for example ``{"head_first": True}``.

    Attributes:
        n_features_in_: Numbers in a row, where ``fit`` saw a two-dimensional ``X``.
        value_range_: Values of black and white; None: those of the type.
        classes_: (C,) the sorted labels that ``fit`` saw; with several labels per image the numbers of its columns.
        classifier_: The network in eval mode.
        temperature_: By which logits are divided; None if it was not fitted.
        keep_: What the option ``keep`` asked for and what was found; None without it. A target that is out of reach is a
            warning.
        history_: One row per epoch.
    """

    def __init__(
        self,
        model: str | Path | ModelSpec = "mobilenetv2_100",
        *,
        method: str = "full",
        regularizer: str | Sequence[str] = (),
        augmentation: str | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        val_fraction: float = VAL_SHARE,
        image_size: int | None = None,
        image_shape: Sequence[int] | None = None,
        value_range: ValueRange = None,
        seed: int = 0,
        device: str = "auto",
        workers: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.model = model
        self.method = method
        self.regularizer = regularizer
        self.augmentation = augmentation
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.val_fraction = val_fraction
        self.image_size = image_size
        self.image_shape = image_shape
        self.value_range = value_range
        self.seed = seed
        self.device = device
        self.workers = workers
        self.options = options

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    """With ``enable_metadata_routing``, ``groups`` of a cross-validation reach ``fit`` without a request by the user."""

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn may hand over: images, or rows of their numbers; one label each, or several."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Images, y: Any, groups: Any = None) -> FineTunedClassifier:
        """Fine-tune on images with labels.

        Args:
            X: (n, height, width) or (n, height, width, 1 or 3), uint8, uint16 or float in [0, 1]; a sequence of such images of
                any sizes, or of images of Pillow; or (n, features), one flattened image a row (see ``image_shape``).
            y: (n,) labels of any type that sorts, or (n, L) of 0 and 1 where an image may have several.
            groups: (n,) patient of each image: no patient is in the training and the validation part.

        Raises:
            DataError: The arrays do not belong together, there is only one class, or too few images for a part.
            UsageError: An option is wrong or contradicts another.
            MissingWeightsError: The weights of the model are not on this machine.
        """
        request = Request.of(self._options())
        images, labels = self._checked(X, y)
        self.value_range_ = fitted_range(images, self.value_range)
        dataset = self._dataset(in_unit_range(images, self.value_range_), labels, groups)
        rows = training_rows(dataset, val_fraction=float(self.val_fraction), seed=self.seed)
        quiet = Reporter(quiet=True)
        prepared = prepare(rows, request, run=None, reporter=quiet)
        make_plan(prepared, run=None, reporter=quiet)  # tells before the training whether a step fits into memory
        with limit_threads(prepared.num_threads), reuse_freed_memory():
            self._train(prepared)
        return self

    def predict_proba(self, X: Images) -> Float[np.ndarray, "num_images num_classes"]:
        """(n, C) calibrated probability of each class in the order of ``classes_``; with several labels of each label.

        Raises:
            NotFittedError: ``fit`` was not called.
        """
        if not hasattr(self, "classifier_"):
            raise NotFittedError("This FineTunedClassifier is not fitted yet. Call fit(images, labels) first.")
        images: Any = X
        if not holds_images(X):
            rows: Any = validate_data(self, images, reset=False, dtype=None)
            images = self._reshaped(rows)
        images = in_unit_range(images, self.value_range_)
        with limit_threads(self.workers or available_cores()), reuse_freed_memory():
            logits = compute_logits(self.classifier_, images_of_arrays(images), reporter=Reporter(quiet=True))
        return self._task.probabilities(logits, self.temperature_)

    def predict(self, X: Images) -> np.ndarray:
        """(n,) the most probable class of each image; with several labels (n, L), 1 from probability 0.5 on."""
        probabilities = self.predict_proba(X)
        if self._task.partitions:
            return self.classes_[probabilities.argmax(axis=1)]
        return self._task.decide(probabilities)

    def _checked(self, X: Any, y: Any) -> tuple[Images, np.ndarray]:
        """Images and labels, by the rules of scikit-learn where it has some."""
        if y is None:
            raise DataError("FineTunedClassifier requires y to be passed, but the target y is None. Give one label per image.")
        images, labels = X, np.asarray(y)
        if not holds_images(X):
            checked: Any = validate_data(self, X, y, dtype=None, multi_output=True, ensure_min_samples=2)
            images, labels = self._reshaped(checked[0]), np.asarray(checked[1])
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
        if labels.ndim == 1:
            check_classification_targets(labels)
        return images, labels

    def _reshaped(self, rows: np.ndarray) -> np.ndarray:
        rows = rows.astype(np.float64) if rows.dtype.kind == "O" else rows
        return rows.reshape(len(rows), *shape_of_rows(rows.shape[1], self.image_shape))

    def _options(self) -> TuneOptions:
        """Options of ``fine_tune``: its defaults, the further options, what is set here."""
        known = options_of(FitOptions)
        own: dict[str, Any] = self.get_params(deep=False)
        further = dict(self.options or {})
        for name in further:
            if name not in known:
                raise UnknownNameError("option of FineTunedClassifier", name, known)
            if name in own:
                raise UsageError(f"Give {name} as an argument of FineTunedClassifier, not among its options.")
        values = {**further, **{name: own[name] for name in own if name in known}}
        return from_mapping(TuneOptions, {name: value_of(known[name], value) for name, value in values.items()})

    def _dataset(self, X: Images, y: np.ndarray, groups: Any) -> Dataset:
        if not task_of(y).partitions:
            self.classes_ = np.arange(y.shape[1])
            return dataset_from_arrays(X, y, groups=groups, class_names=[f"label {column}" for column in self.classes_])
        self.classes_, targets = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"All {len(y)} images have the class {self.classes_[0]!r}; at least two are needed.")
        names = [str(label) for label in self.classes_]
        names = names if len(set(names)) == len(names) else [f"class {index}" for index in range(len(names))]
        return dataset_from_arrays(X, targets.ravel(), groups=groups, class_names=names)

    def _train(self, prepared: Preparation) -> None:
        (parts,) = prepared.rows.parts
        work = TrainingWork(prepared, prepared.fold_data(parts))
        outcomes = run_trainings(work, keep_going=False)
        chosen = pick(results_of(outcomes), prepared.rule, prepared.keep)
        classifier = trained_network(prepared.new_classifier(), chosen)
        _, temperature = calibrate(
            classifier,
            prepared.rows.dataset,
            parts,
            task=prepared.task,
            device=prepared.settings.device,
            num_threads=prepared.num_threads,
        )
        self._task: Task = prepared.task
        self.temperature_: float | None = None if temperature is None else temperature.value
        self.keep_ = keep_record(prepared, [chosen])
        if self.keep_ is not None and not self.keep_.is_reached:
            warnings.warn(missed_in_words(self.keep_, batch_norm_record(prepared)), stacklevel=3)
        self.classifier_ = classifier.to(prepared.settings.device).eval()
        self.history_ = epoch_frame(chosen.record.history)
