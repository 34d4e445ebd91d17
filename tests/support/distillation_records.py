"""What a distillation leaves."""

from crossgraft.distil.record import DistillationRecord, DistilledDomainRecord, DistilledStepsRecord
from crossgraft.records.base import Reference
from support.tuning_records import metric, tuning_record


def domain(name, teacher, student, *, half_width=0.02, **changed):
    facts = {
        "name": name,
        "images": tuning_record().dataset,
        "num_train": 120,
        "num_test": 40,
        "teacher": "resnet18",
        "teacher_fingerprint": "ab" * 32,
        "weight": 1.0,
        "primary_metric": "balanced_accuracy",
        "teacher_metrics": [metric("balanced_accuracy", teacher, half_width=half_width)],
        "student_metrics": [metric("balanced_accuracy", student, half_width=half_width)],
    }
    return DistilledDomainRecord(**(facts | changed))


def distillation_record(model, **changed):
    """A student that is level with one teacher and below the other; ``model`` is that of another record."""
    facts = {
        "model": model,
        "domains": [domain("skin", 0.81, 0.80), domain("fundus", 0.90, 0.70)],
        "history": [
            DistilledStepsRecord(
                last_step=step, cross_entropy=[1 / step, 2 / step], dissimilarity=[0.5, 0.4], divergence=[0.1, 0.2]
            )
            for step in (10, 20, 30)
        ],
        "steps": 30,
        "batch_size": 32,
        "settings": {"learning_rate": 0.03, "weight_decay": 7e-4},
        "weights_file": "universal.safetensors",
        "weights_fingerprint": "cd" * 32,
        "seconds": 1.0,
        "references": [Reference(key="URL", text="Li.")],
    }
    return DistillationRecord(**(facts | changed))
