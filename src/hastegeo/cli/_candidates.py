"""Which pools an environment means to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hastegeo.domain import Workload

if TYPE_CHECKING:
    from hastegeo.settings import Settings

_TRAINING: Final = frozenset({"training_pool_id", "training_pool_ids"})
_IMAGERY: Final = frozenset({"imageryprep_pool_id", "imageryprep_pool_ids"})
_NAMED_BY: Final = {
    Workload.TRAINING: _TRAINING,
    Workload.EMBEDDING: _TRAINING,
    Workload.INFERENCE: _TRAINING | {"inference_pool_ids"},
    Workload.IMAGERYPREP: _IMAGERY,
    Workload.ARTIFACTS: _IMAGERY,
}


def workloads_in_use(settings: Settings) -> tuple[Workload, ...]:
    """Return the workloads whose pools a setting names; all where no setting does.

    An environment that names pools for one workload does not mean to run the others on a default's pool.
    """
    named = tuple(
        workload for workload in Workload if _NAMED_BY[workload].intersection(settings.model_fields_set)
    )
    return named or tuple(Workload)


def candidate_ranks(settings: Settings) -> dict[str, dict[str, int]]:
    """Return, for each candidate pool, the workloads that may run there, with its rank (1 is preferred)."""
    ranks: dict[str, dict[str, int]] = {}
    for workload in workloads_in_use(settings):
        for rank, pool in enumerate(settings.candidates(workload), start=1):
            ranks.setdefault(pool, {})[str(workload)] = rank
    return ranks
