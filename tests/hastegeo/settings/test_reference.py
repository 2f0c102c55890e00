"""The settings reference, the report, and the comparison with a deployment."""

from __future__ import annotations

from pathlib import Path

from hastegeo.settings import Settings, drift, read_env_file, reference_page, report, setting_names

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def test_the_checked_in_page_is_current() -> None:
    assert PAGE.read_text() == reference_page(), (
        "run: python -m hastegeo.settings > docs/reference/settings.md"
    )


def test_every_setting_is_on_the_page() -> None:
    page = reference_page()
    for name in setting_names(Settings):
        assert f"`{name}`" in page


def test_a_report_shows_values_as_written_and_no_secret() -> None:
    settings = Settings.load(
        {
            "RUNNER_TYPE": "local",
            "AZURE_BATCH_ACCOUNT_KEY": "c2VjcmV0LWtleQ==",
            "AZURE_BATCH_TRAINING_POOL_IDS": "a, b",
            "HASTE_MAX_WALL_CLOCK": "90m",
        }
    )
    rows = {row.name: row for row in report(settings)}
    assert rows["AZURE_BATCH_TRAINING_POOL_IDS"].value == "a,b"
    assert rows["HASTE_MAX_WALL_CLOCK"].value == "PT1H30M"
    assert not rows["HASTE_MAX_WALL_CLOCK"].is_default
    assert (rows["HASTE_QUEUE_ALLOWANCE"].value, rows["HASTE_QUEUE_ALLOWANCE"].is_default) == ("PT12H", True)
    assert rows["AZURE_BATCH_MANAGE_POOLS"].value == "true"
    assert "c2VjcmV0" not in repr(rows)


def test_a_report_can_be_loaded_again() -> None:
    settings = Settings.load({"RUNNER_TYPE": "local", "HASTE_MAX_WALL_CLOCK": "1d", "HASTE_TENANT": "dev1"})
    again = Settings.load({row.name: row.value for row in report(settings)})
    assert again.model_dump() == settings.model_dump()


def test_drift_names_what_nobody_reads_and_what_is_left_out() -> None:
    emitted = [*setting_names(Settings), "AZURE_BATCH_TYPO", "HASTE_TENNANT", "PATH"]
    emitted.remove("HASTE_TENANT")
    emitted.remove("AZURE_BATCH_REGISTRY_SERVER")  # its old name is still there
    found = drift(emitted)
    assert found.read_by_nobody == ("AZURE_BATCH_TYPO", "HASTE_TENNANT")
    assert found.not_emitted == ("HASTE_TENANT",)


def test_an_env_file_is_read_as_shells_write_it() -> None:
    text = "# a comment\n\nexport A=1\nB = 'two words'\nC=\"x=y\"\nnonsense\nD=\n"
    assert read_env_file(text) == {"A": "1", "B": "two words", "C": "x=y", "D": ""}
