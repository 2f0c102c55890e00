"""The environment contract (AZURE_BATCH_*, HASTE_*), typed and validated."""

from hastegeo.settings._fields import RunnerType, SasScope
from hastegeo.settings.model import Settings, names_of, setting_names

__all__ = ["RunnerType", "SasScope", "Settings", "names_of", "setting_names"]
