"""The environment contract (AZURE_BATCH_*, HASTE_*), typed and validated."""

from hastegeo.settings._fields import RunnerType, SasScope
from hastegeo.settings.model import Settings, names_of, setting_names
from hastegeo.settings.reference import Drift, SettingRow, drift, read_env_file, reference_page, report

__all__ = [
    "Drift",
    "RunnerType",
    "SasScope",
    "SettingRow",
    "Settings",
    "drift",
    "names_of",
    "read_env_file",
    "reference_page",
    "report",
    "setting_names",
]
