"""Request bodies checked against the API's schema, which `tools/generate_batch_schema.py` writes as data."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from importlib import resources
from typing import Any, Final

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.wire.durations import format_duration, parse_duration
from batch_emulator.wire.times import parse_time

# https://learn.microsoft.com/rest/api/batchservice/task/add: 1 to 64 of letters, digits, hyphen, underscore.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IDENTIFIED: Final = {
    "BatchPoolCreateOptions",
    "BatchJobCreateOptions",
    "BatchJobScheduleCreateOptions",
    "BatchTaskCreateOptions",
}
_LEAST_INTEGER: Final = -(2**31)
_GREATEST_INTEGER: Final = 2**31 - 1
_LONGEST_ECHO: Final = 200
# What answers say about themselves, and what clients send back when they replace what they got.
_ANNOTATION: Final = "odata."


@functools.cache
def _schema() -> dict[str, dict[str, dict[str, Any]]]:
    text = (resources.files("batch_emulator.wire") / "schema.json").read_text()
    loaded: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return loaded


def validate(model: str, body: object) -> dict[str, Any]:
    """Return a body checked against a model, with enums in their canonical case and durations normalised.

    Properties sent as null are left out, and so are those that only the service sets. Raises `BatchError`
    that names the property: unknown, missing, of the wrong type, or not one of the allowed values.
    """
    checked = _object(model, body, "")
    if model in _IDENTIFIED:
        _check_id(checked["id"])
    if model == "BatchTaskGroup":
        for task in checked["value"]:
            _check_id(task["id"])
    return checked


def _check_id(text: str) -> None:
    if not _ID.fullmatch(text):
        raise invalid_property("id", "An id has 1 to 64 letters, digits, hyphens and underscores.", text)


def _object(model: str, body: object, path: str) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise BatchError(
            "InvalidRequestBody", values=(("Reason", f"{path.rstrip('.') or 'The body'} must be an object."),)
        )
    properties = _schema()[model]
    checked: dict[str, Any] = {}
    for name, value in body.items():
        if name.startswith(_ANNOTATION):
            continue
        shape = properties.get(name)
        where = f"{path}{name}"
        if shape is None:
            raise BatchError(
                "InvalidRequestBody",
                values=(
                    ("PropertyName", where[:_LONGEST_ECHO]),
                    ("Reason", f"The property '{name[:_LONGEST_ECHO]}' does not exist here."),
                ),
            )
        if value is not None and not shape.get("readOnly"):
            checked[name] = _value(shape, value, where)
    for name, shape in properties.items():
        if shape.get("required") and name not in checked:
            raise BatchError("MissingRequiredProperty", values=(("PropertyName", f"{path}{name}"),))
    return checked


def _value(shape: dict[str, Any], value: object, where: str) -> Any:
    kind = shape["type"]
    if kind == "model":
        return _object(shape["model"], value, f"{where}.")
    if kind == "array":
        if not isinstance(value, list):
            raise _wrong_type(where, "a list", value)
        return [_value(shape["items"], item, f"{where}[{index}]") for index, item in enumerate(value)]
    if kind == "enum":
        return _enum(shape["values"], value, where)
    if kind == "integer":
        return _integer(shape, value, where)
    return _SCALARS[kind](value, where)


def _enum(values: list[str], value: object, where: str) -> str:
    text = _string(value, where).lower()
    for allowed in values:
        if allowed.lower() == text:
            return allowed
    raise invalid_property(where, f"It must be one of {', '.join(values)}.", value)


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(where, "a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid_property(where, "It holds half of a surrogate pair, which is no character.") from None
    return value


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(where, "true or false", value)
    return value


def _integer(shape: dict[str, Any], value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(where, "an integer", value)
    least, greatest = shape.get("minimum", _LEAST_INTEGER), shape.get("maximum", _GREATEST_INTEGER)
    if not least <= value <= greatest:
        raise invalid_property(where, f"It must be from {least} to {greatest}.")
    return value


def _time(value: object, where: str) -> str:
    text = _string(value, where)
    try:
        parse_time(text)
    except ValueError:
        raise invalid_property(where, "An ISO 8601 date is expected.", value) from None
    return text


def _duration(value: object, where: str) -> str:
    text = _string(value, where)
    try:
        return format_duration(parse_duration(text))
    except ValueError:
        raise invalid_property(where, "An ISO 8601 duration is expected.", value) from None


def _any_object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type(where, "an object", value)
    return value


def _wrong_type(where: str, wanted: str, value: object) -> BatchError:
    # The value itself is not repeated: what is in the wrong place may be a secret.
    return invalid_property(where, f"Expected {wanted}, not {_JSON_TYPES[type(value)]}.")


_JSON_TYPES: Final[dict[type, str]] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "a list",
    str: "a string",
    type(None): "null",
}
_SCALARS: Final[dict[str, Callable[[object, str], Any]]] = {
    "string": _string,
    "boolean": _boolean,
    "time": _time,
    "duration": _duration,
    "object": _any_object,
}
