"""Azure Batch's autoscale language: parse a formula, and evaluate it over samples of a pool's metrics.

Sources of the rules: "Create a formula to automatically scale compute nodes in a Batch pool" (Azure Batch
documentation), and recorded runs of the service for the form of results and errors.
"""

from batch_emulator.autoscale.errors import AutoScaleError, AutoScaleFormulaSyntaxError
from batch_emulator.autoscale.evaluator import AutoScaleResult, CurrentTargets, evaluate
from batch_emulator.autoscale.metrics import METRICS, MetricSource, MetricStore
from batch_emulator.autoscale.parser import parse
from batch_emulator.autoscale.syntax import Formula
from batch_emulator.autoscale.values import NodeDeallocationOption, Value

__all__ = [
    "METRICS",
    "AutoScaleError",
    "AutoScaleFormulaSyntaxError",
    "AutoScaleResult",
    "CurrentTargets",
    "Formula",
    "MetricSource",
    "MetricStore",
    "NodeDeallocationOption",
    "Value",
    "evaluate",
    "parse",
]
