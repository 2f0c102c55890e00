"""Write the schema that the emulator checks request bodies against, from the models of azure-batch.

    python tools/generate_batch_schema.py [--check]

The result is data: for each model its properties by wire name, with type, whether required, and enum values.
Only what requests and answers reach is kept.
"""

from __future__ import annotations

import argparse
import datetime as dt
import enum
import inspect
import json
import sys
import typing
from pathlib import Path

from azure.batch import models
from azure.batch._utils import model_base
from azure.batch.models import _models

TARGET = Path(__file__).parent.parent / "src/batch_emulator/wire/schema.json"

# The bodies that requests carry.
ROOTS = (
    "BatchJob",
    "BatchJobCreateOptions",
    "BatchJobDisableOptions",
    "BatchJobScheduleCreateOptions",
    "BatchJobSchedule",
    "BatchJobScheduleUpdateOptions",
    "BatchJobTerminateOptions",
    "BatchJobUpdateOptions",
    "BatchNodeDeallocateOptions",
    "BatchNodeDisableSchedulingOptions",
    "BatchNodeRebootOptions",
    "BatchNodeReimageOptions",
    "BatchNodeRemoveOptions",
    "BatchNodeUserCreateOptions",
    "BatchNodeUserReplaceOptions",
    "BatchPoolCreateOptions",
    "BatchPoolEnableAutoScaleOptions",
    "BatchPoolEvaluateAutoScaleOptions",
    "BatchPoolReplaceOptions",
    "BatchPoolResizeOptions",
    "BatchPoolUpdateOptions",
    "BatchTask",
    "BatchTaskCreateOptions",
    "BatchTaskGroup",
    "UploadBatchServiceLogsOptions",
)

# What answers show: $filter and $select name its properties.
SHOWN = (
    "BatchApplication",
    "BatchJobPreparationAndReleaseTaskStatus",
    "BatchNode",
    "BatchNodeFile",
    "BatchNodeVMExtension",
    "BatchPool",
    "BatchPoolNodeCounts",
    "BatchPoolUsageMetrics",
    "BatchSubtask",
    "BatchSupportedImage",
)

# What 14.2 sends and 15.1 has dropped.
CERTIFICATES = {"type": "array", "items": {"type": "model", "model": "CertificateReference"}}
COMMUNICATION = {"type": "enum", "values": ["default", "classic", "simplified"]}
TOKENS = {"type": "model", "model": "AuthenticationTokenSettings"}
POOL = {
    "applicationLicenses": {"type": "array", "items": {"type": "string"}},
    "certificateReferences": CERTIFICATES,
    "cloudServiceConfiguration": {"type": "model", "model": "CloudServiceConfiguration"},
    "resourceTags": {"type": "object"},
    "targetNodeCommunicationMode": COMMUNICATION,
}
OLDER: dict[str, dict[str, object]] = {
    "AuthenticationTokenSettings": {
        "access": {"type": "array", "items": {"type": "enum", "values": ["job"]}},
    },
    "BatchJobManagerTask": {"authenticationTokenSettings": TOKENS},
    "BatchPoolCreateOptions": POOL,
    "BatchPoolReplaceOptions": {
        "certificateReferences": CERTIFICATES,
        "targetNodeCommunicationMode": COMMUNICATION,
    },
    "BatchPoolSpecification": POOL,
    "BatchPoolUpdateOptions": {
        "certificateReferences": CERTIFICATES,
        "resourceTags": {"type": "object"},
        "targetNodeCommunicationMode": COMMUNICATION,
    },
    "BatchTaskCreateOptions": {"authenticationTokenSettings": TOKENS},
    "CertificateReference": {
        "storeLocation": {"type": "enum", "values": ["currentuser", "localmachine"]},
        "storeName": {"type": "string"},
        "thumbprint": {"type": "string", "required": True},
        "thumbprintAlgorithm": {"type": "string", "required": True},
        "visibility": {
            "type": "array",
            "items": {"type": "enum", "values": ["starttask", "task", "remoteuser"]},
        },
    },
    "CloudServiceConfiguration": {
        "osFamily": {"type": "string", "required": True},
        "osVersion": {"type": "string"},
    },
    "DataDisk": {
        "storageAccountType": {
            "type": "enum",
            "values": ["standard_lrs", "premium_lrs", "standardssd_lrs"],
        },
    },
}

# The least and greatest value of integers, by property or by model and property: the models do not say them.
# https://learn.microsoft.com/rest/api/batchservice
RANGES: dict[str, tuple[int, int | None]] = {
    "NetworkSecurityGroupRule.priority": (150, 4096),
    "backendPort": (1, 65535),
    "diskSizeGB": (1, None),
    "frontendPortRangeEnd": (1, 65534),
    "frontendPortRangeStart": (1, 65534),
    "lun": (0, 63),
    "maxBatchInstancePercent": (5, 100),
    "maxParallelTasks": (-1, None),
    "maxTaskRetryCount": (-1, None),
    "maxUnhealthyInstancePercent": (5, 100),
    "maxUnhealthyUpgradedInstancePercent": (0, 100),
    "numberOfInstances": (1, None),
    "priority": (-1000, 1000),
    "requiredSlots": (1, None),
    "targetDedicatedNodes": (0, None),
    "targetLowPriorityNodes": (0, None),
    "taskSlotsPerNode": (1, 256),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 if the file is not current")
    options = parser.parse_args()
    text = json.dumps(generate(), indent=1, sort_keys=True) + "\n"
    if options.check:
        return 0 if TARGET.exists() and TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


def generate() -> dict[str, object]:
    schema: dict[str, object] = {}
    todo = [*ROOTS, *SHOWN]
    while todo:
        name = todo.pop()
        if name in schema:
            continue
        properties, reached = describe(getattr(_models, name))
        schema[name] = properties | OLDER.get(name, {})
        todo += reached
    return OLDER | schema


def describe(model: type) -> tuple[dict[str, object], list[str]]:
    properties: dict[str, object] = {}
    reached: list[str] = []
    hints: dict[str, object] = {}
    for cls in reversed(model.__mro__):
        hints |= getattr(cls, "__annotations__", {})
    for attribute, text in hints.items():
        field = find_field(model, attribute)
        if field is None:
            continue
        hint = resolve(text)
        shape, models_reached = describe_type(hint)
        shape["required"] = not is_optional(hint)
        if "read" in (field._visibility or []) and len(field._visibility) == 1:
            shape["readOnly"] = True
            shape["required"] = False
        name = field._rest_name_input or attribute
        if shape["type"] == "integer" and not shape.get("readOnly"):
            shape |= limits(f"{model.__name__}.{name}", name)
        properties[name] = shape
        reached += models_reached
    return properties, reached


def limits(*names: str) -> dict[str, object]:
    for name in names:
        if name in RANGES:
            least, greatest = RANGES[name]
            return {"minimum": least} | ({} if greatest is None else {"maximum": greatest})
    return {}


def find_field(model: type, attribute: str) -> model_base._RestField | None:
    for cls in model.__mro__:
        found = cls.__dict__.get(attribute)
        if isinstance(found, model_base._RestField):
            return found
    return None


def resolve(text: object) -> object:
    if not isinstance(text, str):
        return text
    names = {**vars(models), **vars(_models), "_models": models, "_types": None, "datetime": dt}
    names |= {"typing": typing, "Optional": typing.Optional, "Union": typing.Union, "Literal": typing.Literal}
    return eval(text, names)


def is_optional(hint: object) -> bool:
    return type(None) in typing.get_args(hint)


def describe_type(hint: object) -> tuple[dict[str, object], list[str]]:
    arguments = [a for a in typing.get_args(hint) if a is not type(None)]
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is getattr(__import__("types"), "UnionType", None):
        names = [resolve(a.__forward_arg__) if isinstance(a, typing.ForwardRef) else a for a in arguments]
        # The SDK writes an enum as "the enum or a string"; the enum tells more.
        names.sort(key=lambda name: not (inspect.isclass(name) and issubclass(name, enum.Enum)))
        return describe_type(names[0])
    if isinstance(hint, typing.ForwardRef):
        return describe_type(resolve(hint.__forward_arg__))
    if isinstance(hint, str):
        return describe_type(resolve(hint))
    if origin is list:
        items, reached = describe_type(arguments[0])
        return {"type": "array", "items": items}, reached
    if origin is dict:
        return {"type": "object"}, []
    if origin is typing.Literal:
        values = [a.value if isinstance(a, enum.Enum) else a for a in arguments]
        return {"type": "enum", "values": values}, []
    if inspect.isclass(hint):
        if issubclass(hint, enum.Enum):
            return {"type": "enum", "values": [member.value for member in hint]}, []
        simple = {
            bool: "boolean",
            int: "integer",
            float: "number",
            str: "string",
            bytes: "string",
            dt.datetime: "time",
            dt.timedelta: "duration",
        }
        if hint in simple:
            return {"type": simple[hint]}, []
        if issubclass(hint, model_base.Model):
            return {"type": "model", "model": hint.__name__}, [hint.__name__]
    raise TypeError(f"unknown type {hint!r}")


if __name__ == "__main__":
    sys.exit(main())
