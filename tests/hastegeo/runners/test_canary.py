"""A signature that the service echoes is found nowhere: not in errors, tracebacks, logs, reprs or files."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hastegeo.credentials import RedactingFilter
from hastegeo.domain import TaskSpec
from hastegeo.errors import RunnerError
from hastegeo.runners import AzureBatchRunner


def signatures(azure: Any) -> set[str]:
    text = json.dumps(list(azure.tasks.values()))
    return {part.split("&")[0].split('"')[0] for part in text.split("sig=")[1:]}


def test_no_signature_is_shown_or_written(
    azure: Any,
    runner: AzureBatchRunner,
    make_spec: Callable[..., TaskSpec],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.handler.addFilter(RedactingFilter())
    submission = runner.submit(make_spec())
    planted = signatures(azure)
    assert planted
    url = azure.tasks[submission.ref.job_id, submission.ref.task_id]["resourceFiles"][0][
        "storageContainerUrl"
    ]
    echo = {"code": "InvalidPropertyValue", "message": {"lang": "en", "value": f"cannot read {url}"}}
    azure.fail("create_task", (400, {"Content-Type": "application/json"}, json.dumps(echo).encode()))
    with pytest.raises(RunnerError, match="cannot read https") as caught:
        runner.submit(make_spec("another"))
    logging.getLogger("test").error("%s", url, exc_info=caught.value)
    shown = [
        str(caught.value),
        repr(caught.value),
        "".join(traceback.format_exception(caught.value)),
        repr(submission),
        repr(list(runner.list())),
        json.dumps(runner.dry_run(make_spec("third")).task.as_dict()),
        caplog.text,
        *(path.read_text() for path in tmp_path.rglob("*") if path.is_file()),
    ]
    assert "sig=REDACTED" in caplog.text
    for text in shown:
        for signature in planted:
            assert signature not in text
