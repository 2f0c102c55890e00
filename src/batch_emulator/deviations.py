"""Where this emulator knowingly differs from the service, as data: the coverage reference shows it."""

from __future__ import annotations

from typing import Final

DEVIATIONS: Final[tuple[tuple[str, str], ...]] = (
    ("One account", "An emulator is one account with one key; there is no management plane."),
    (
        "Time",
        "With `--time-scale` the service's own waiting (boot, allocation, autoscale, retention, schedules) "
        "runs faster. Timestamps, signatures and the wall clock of tasks are always real.",
    ),
    (
        "Nodes",
        "A node is a directory on this machine; its size and image are names. Nodes of all pools share the "
        "machine's processors, and resource metrics such as `$CPUPercent` are not sampled.",
    ),
    (
        "Containers",
        "A container task runs the command that the image table gives for its image, in a sandbox. Run "
        "options that a sandbox cannot give fail the task with `ContainerInvalidRunOptions`.",
    ),
    (
        "Preemption",
        "Nodes are preempted on demand only, and restored after a fixed time. Whether `requeueCount` rises "
        "is not documented by the service; here it does.",
    ),
    (
        "`retaineddata`",
        "Reboot, reimage, deallocation and removal of nodes wait for the tasks, as with `taskcompletion`, "
        "but not for the retention time of their files.",
    ),
    ("Multi-instance tasks", "Refused with `NotSupportedByEmulator`; no task has subtasks."),
    ("Application packages, file system mounts", "Refused with `NotSupportedByEmulator`."),
    ("Task authentication tokens", "`authenticationTokenSettings` is refused with `NotSupportedByEmulator`."),
    ("`$filter`", "Any property of the answer can be filtered by; the service allows some of them."),
)
