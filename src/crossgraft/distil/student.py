"""URL's universal backbone: several networks, each of its own domain, distilled into one that has learned from all of them.

Source: Li, Liu and Bilen, *Universal Representation Learning from Multiple Domains for Few-shot Classification*, ICCV 2021.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from crossgraft.data.transforms import prepare_batch
from crossgraft.distil.domains import DistillationSettings, DistilledStep, Domain, answers_of, check, new_head, new_map
from crossgraft.errors import DivergedError
from crossgraft.models import Backbone
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.models.sources.local_checkpoint import header_text, is_header_of_ours
from crossgraft.seeding import torch_generator
from crossgraft.similarity import batch_rbf_cka
from crossgraft.storage.atomic import refuse_to_replace, write_atomically
from crossgraft.storage.tensors import tensor_bytes
from crossgraft.tune.engine.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from crossgraft.tune.engine.optimizers import NamedOptimizer, ScheduledRate
from crossgraft.tune.engine.step import step_randomness
from crossgraft.tune.schedules import Cosine, Steps

OnDistilled = Callable[[DistilledStep], object]


@dataclass(frozen=True, eq=False)
class UniversalBackbone:
    """What came out.

    Attributes:
        backbone: The student, in eval mode, without the heads.
        heads: Domain → its linear head.
        history: One row per step, of this and of earlier attempts.
    """

    backbone: Backbone
    heads: Mapping[str, nn.Linear]
    history: list[DistilledStep]

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the weights as safetensors, with what builds the network and prepares its images: ``--model PATH`` reads them.

        Args:
            path: Folders above it are made.
            overwrite: Replace a file that this function has written; no other file is replaced.

        Raises:
            UsageError: There is such a file and ``overwrite`` is off, or another one, or a folder.
            StorageError: The file cannot be written.
        """
        refuse_to_replace(Path(path), is_header_of_ours, what="a distilled network", overwrite=overwrite)
        state = {name: value.detach().cpu().contiguous() for name, value in self.backbone.module.state_dict().items()}
        backbone, network = self.backbone, self.backbone.network
        source, kwargs = (backbone.architecture, {}) if network is None else (network.source, network.kwargs)
        header = header_text(source, kwargs, backbone.preprocessing, backbone.licence)
        return write_atomically(Path(path), tensor_bytes(state, header))


def distil_domains(
    student: Backbone,
    domains: Sequence[Domain],
    settings: DistillationSettings | None = None,
    *,
    checkpoint_folder: Path | None = None,
    on_step: OnDistilled | None = None,
) -> UniversalBackbone:
    """Train a copy of ``student`` to classify every domain, and to look at its images as its teacher does.

        L = Σ_t CE_t + w(i) λ_t (1 − CKA_rbf(A_t f, f_t) + T² KL_t)

    with w falling from 1 to 0 over the steps. Teachers answer once, on plain images, so that nothing is augmented. With a
    checkpoint in the folder the training goes on from there, and ends with the same bits as one that was not stopped.

    Args:
        student: Backbone to start from; it is not changed.
        domains: At least two.
        settings: How long and how strongly.
        checkpoint_folder: None: nothing is kept.
        on_step: Called after each step.

    Raises:
        UsageError: There are fewer than two domains, two of one name, or a setting is out of its range.
        DataError: A domain has fewer images than a batch, or other classes than its teacher.
        DivergedError: The loss is not finite; the last checkpoint stays.
        OtherRunError: The checkpoint belongs to another training.

    Cost: per step a forward and a backward pass of ``batch_size`` images per domain; before, one pass of each teacher.
    """
    settings = settings or DistillationSettings()
    check(domains, settings)
    return _Distillation(student, domains, settings, checkpoint_folder, on_step).run()


class _Distillation:
    """Student, heads, maps, optimisers, and where they are."""

    def __init__(
        self,
        student: Backbone,
        domains: Sequence[Domain],
        settings: DistillationSettings,
        folder: Path | None,
        on_step: OnDistilled | None,
    ) -> None:
        self.domains, self.settings, self.folder, self.on_step = domains, settings, folder, on_step
        self.start, self.student = student, student.around(copy.deepcopy(student.module))
        self.network = self.student.module
        width = student.num_features
        # by number: a name may have a point, which names of parameters are cut at
        self.heads = nn.ModuleList(new_head(width, domain.teacher.num_outputs, settings.seed, domain.name) for domain in domains)
        self.maps = nn.ModuleList(new_map(width, domain.teacher.num_features) for domain in domains)
        self._device = next(self.network.parameters()).device
        self.heads, self.maps = self.heads.to(self._device), self.maps.to(self._device)
        self.answers = [answers_of(domain, self._device) for domain in domains]
        most = max(len(domain.dataset) for domain in domains)
        self.weights = [settings.largest_weight if len(domain.dataset) == most else 1.0 for domain in domains]
        self.rate = ScheduledRate(Cosine(0.0), Steps(settings.steps, 0, settings.steps))
        self.history: list[DistilledStep] = []
        self._make_optimizers()

    def _make_optimizers(self) -> None:
        settings = self.settings
        of_student = dict([*self.network.named_parameters(), *self.heads.named_parameters(prefix="heads")])
        sgd = torch.optim.SGD(
            [{"params": list(of_student.values()), "largest_learning_rate": settings.learning_rate}],
            lr=settings.learning_rate,
            momentum=0.9,
            weight_decay=settings.weight_decay,
        )
        adam = torch.optim.Adam(
            [{"params": list(self.maps.parameters()), "largest_learning_rate": settings.adapter_learning_rate}],
            lr=settings.adapter_learning_rate,
            weight_decay=settings.adapter_weight_decay,
        )
        self.optimizers = {
            "student": NamedOptimizer(sgd, of_student),
            "maps": NamedOptimizer(adam, dict(self.maps.named_parameters(prefix="maps"))),
        }

    def run(self) -> UniversalBackbone:
        self._go_on()
        self.network.train()
        for step in range(len(self.history), self.settings.steps):
            self._step(step)
            done = step + 1
            if self.folder is not None and (done % self.settings.checkpoint_every == 0 or done == self.settings.steps):
                self._refuse_not_finite(done)
                write_checkpoint(self.folder, self._checkpoint())
        self._refuse_not_finite(len(self.history))
        self.network.eval()
        return UniversalBackbone(
            self._as_backbone(),
            {domain.name: cast(nn.Linear, head) for domain, head in zip(self.domains, self.heads, strict=True)},
            self.history,
        )

    def _refuse_not_finite(self, step: int) -> None:
        """Before weights are kept: a finite loss may have a gradient that is not."""
        trained = [*self.network.parameters(), *self.heads.parameters(), *self.maps.parameters()]
        if not all(bool(torch.isfinite(parameter).all()) for parameter in trained):
            raise DivergedError(
                f"Weights of the distillation are not finite after step {step}. Lower learning_rate, and look whether a teacher "
                "gives the same features for all images."
            )

    def _as_backbone(self) -> Backbone:
        """With fingerprints of its own."""
        start = self.start
        return Backbone(
            self.network,
            name=f"{start.name} · universal",
            architecture=start.architecture,
            source=start.source,
            preprocessing=start.preprocessing,
            family=start.family,
            licence=start.licence,
            architecture_key=start.architecture_key,
            device=start.device,
            network=start.network,
        )

    def _step(self, step: int) -> None:
        # dropout and stochastic depth draw the same numbers in a step, resumed or not
        with step_randomness(self.settings.seed, step, 0, self._device):
            terms = self._learn(step)
        self.history.append(terms)
        if self.on_step is not None:
            self.on_step(terms)

    def _learn(self, step: int) -> DistilledStep:
        rows = [self._rows(domain, step) for domain in self.domains]
        images = torch.cat([self._images(domain, chosen) for domain, chosen in zip(self.domains, rows, strict=True)])
        features = self.student.read_out(images.to(self._device)).features.split(self.settings.batch_size)
        falling = 1 - step / self.settings.steps
        terms = DistilledStep(step + 1, {}, {}, {})
        total = features[0].new_zeros(())
        for place, own in enumerate(features):
            total = total + self._loss(place, own, rows[place], falling, terms)
        if not bool(torch.isfinite(total)):
            raise DivergedError(f"The loss of the distillation is not finite at step {step + 1}. Lower learning_rate.")
        for optimizer in self.optimizers.values():
            optimizer.set_learning_rate_share(self.rate.share(step))
            optimizer.optimizer.zero_grad()
        total.backward()
        for optimizer in self.optimizers.values():
            optimizer.optimizer.step()
        return terms

    def _loss(self, place: int, features: Tensor, rows: np.ndarray, falling: float, terms: DistilledStep) -> Tensor:
        """CE_t + w λ_t (1 − CKA + T² KL), and its parts into ``terms``."""
        name, answers = self.domains[place].name, self.answers[place]
        chosen = torch.from_numpy(rows).to(self._device)
        logits, temperature = self.heads[place](features), self.settings.temperature
        entropy = torch.nn.functional.cross_entropy(logits, answers.targets[chosen])
        unlike = 1 - batch_rbf_cka(self.maps[place](features), answers.features[chosen])
        divergence = torch.nn.functional.kl_div(
            (logits / temperature).log_softmax(dim=1),
            (answers.logits[chosen] / temperature).log_softmax(dim=1),
            reduction="batchmean",
            log_target=True,
        )
        for kept, value in zip(terms[1:], (entropy, unlike, divergence), strict=True):
            kept[name] = float(value.detach())
        return entropy + falling * self.weights[place] * (unlike + temperature**2 * divergence)

    def _rows(self, domain: Domain, step: int) -> np.ndarray:
        """Images of this step: a permutation per pass, cut into whole batches; the rest waits for the next pass."""
        size = self.settings.batch_size
        batches = len(domain.dataset) // size
        generator = torch_generator(self.settings.seed, "universal", domain.name, step // batches)
        order = torch.randperm(len(domain.dataset), generator=generator)
        return order[(step % batches) * size :][:size].numpy()

    def _images(self, domain: Domain, rows: np.ndarray) -> Tensor:
        return prepare_batch([domain.dataset.read(int(row)) for row in rows], self.start.preprocessing)

    def _checkpoint(self) -> Checkpoint:
        tensors = {
            **{f"network|{name}": value for name, value in self.network.state_dict().items()},
            **{f"heads|{name}": value for name, value in self.heads.state_dict().items()},
            **{f"maps|{name}": value for name, value in self.maps.state_dict().items()},
        }
        for kind, optimizer in self.optimizers.items():
            tensors |= {f"{kind}/{name}": value for name, value in optimizer.state().items()}
        return Checkpoint(self._configuration(), {"history": [list(row) for row in self.history]}, tensors)

    def _configuration(self) -> dict[str, object]:
        """What decides the result."""
        return {
            **{name: value for name, value in asdict(self.settings).items() if name != "checkpoint_every"},
            "student": [self.start.weights_fingerprint, self.start.preprocessing.describe()],
            "domains": [
                [
                    domain.name,
                    domain.dataset.fingerprint,
                    weights_fingerprint(domain.teacher),
                    domain.teacher.preprocessing.describe(),
                ]
                for domain in self.domains
            ],
        }

    def _go_on(self) -> None:
        checkpoint = None if self.folder is None else read_checkpoint(self.folder, self._configuration())
        if checkpoint is None:
            return
        parts = {"network": self.network, "heads": self.heads, "maps": self.maps}
        for kind, module in parts.items():
            prefix = f"{kind}|"
            module.load_state_dict(
                {name.removeprefix(prefix): value for name, value in checkpoint.tensors.items() if name.startswith(prefix)}
            )
        for kind, optimizer in self.optimizers.items():
            prefix = f"{kind}/"
            optimizer.load_state(
                {name.removeprefix(prefix): value for name, value in checkpoint.tensors.items() if name.startswith(prefix)}
            )
        self.history = [DistilledStep(*row) for row in checkpoint.position["history"]]
