"""The environment contract: what is read, what is refused, and how it is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hastegeo.domain import Workload
from hastegeo.errors import ConfigurationError
from hastegeo.settings import RunnerType, Settings, names_of, setting_names

CONTAINER = "https://dev1store.blob.core.windows.net/data"
FOREIGN = "https://dev2store.blob.core.windows.net/data"
SIGNED = f"{CONTAINER}?sig=abcdefgh"
OLDER = {
    "AZURE_BATCH_URL": "https://account.region.batch.azure.com",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": "/subscriptions/s/identities/pool",
}
SHARED = {
    "AZURE_BATCH_URL": "https://account.region.batch.azure.com",
    "AZURE_BATCH_USE_SAS": "true",
    "AZURE_BATCH_MANAGE_POOLS": "false",
    "AZURE_BATCH_OUTPUT_CONTAINER_URL": CONTAINER,
    "AZURE_BATCH_TRAINING_POOL_IDS": "h100-pool,t4-pool",
}


def problems(environment: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(environment)
    return [line.strip() for line in caught.value.message.splitlines()[1:]]


def test_unset_new_settings_give_the_older_behaviour() -> None:
    settings = Settings.load(OLDER)
    assert (settings.use_sas, settings.manage_pools) == (False, True)
    assert settings.candidates(Workload.TRAINING) == ("training-pool",)
    assert settings.candidates(Workload.INFERENCE) == ("training-pool",)
    assert settings.candidates(Workload.IMAGERYPREP) == ("imageryprep-pool",)
    assert not any(settings.is_shared(workload) for workload in Workload)


def test_an_environment_opts_in_and_out_by_settings_alone() -> None:
    settings = Settings.load(SHARED)
    assert settings.use_sas
    assert settings.candidates(Workload.TRAINING) == ("h100-pool", "t4-pool")
    assert settings.is_shared(Workload.EMBEDDING)
    assert not settings.is_shared(Workload.IMAGERYPREP)
    assert Settings.load(OLDER) == Settings.load({**SHARED, **dict.fromkeys(SHARED, ""), **OLDER})


def test_inference_falls_back_to_the_training_list() -> None:
    assert Settings.load(SHARED).candidates(Workload.INFERENCE) == ("h100-pool", "t4-pool")
    own = Settings.load({**SHARED, "AZURE_BATCH_INFERENCE_POOL_IDS": "t4-pool"})
    assert own.candidates(Workload.INFERENCE) == ("t4-pool",)


def test_lists_are_trimmed_deduplicated_and_keep_their_order() -> None:
    settings = Settings.load({**SHARED, "AZURE_BATCH_TRAINING_POOL_IDS": " b , a,, b ,c,"})
    assert settings.training_pool_ids == ("b", "a", "c")


@pytest.mark.parametrize("word", ["true", "TRUE", "Yes", "1", " true "])
def test_words_for_true(word: str) -> None:
    assert Settings.load({**SHARED, "AZURE_BATCH_USE_SAS": word}).use_sas is True


@pytest.mark.parametrize("word", ["false", "No", "0"])
def test_words_for_false(word: str) -> None:
    assert Settings.load({**OLDER, "AZURE_BATCH_USE_SAS": word}).use_sas is False


@pytest.mark.parametrize("word", ["on", "2", "t", "truee", "0.0"])
def test_other_words_name_the_setting(word: str) -> None:
    (problem,) = problems({**OLDER, "AZURE_BATCH_USE_SAS": word})
    assert problem.startswith("AZURE_BATCH_USE_SAS: write true or false")


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        {
            "AZURE_BATCH_URL": "<batch-url>",
            "AZURE_BATCH_USE_SAS": "maybe",
            "AZURE_BATCH_MANAGE_POOLS": "perhaps",
            "HASTE_MAX_WALL_CLOCK": "4",
            "HASTE_TENANT": "Dev 1",
            "AZURE_BATCH_TARGET_DEDICATED_NODES": "-1",
        }
    )
    names = [problem.partition(":")[0] for problem in found]
    assert sorted(names) == [
        "AZURE_BATCH_MANAGE_POOLS",
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
        "AZURE_BATCH_TARGET_DEDICATED_NODES",
        "AZURE_BATCH_URL",
        "AZURE_BATCH_USE_SAS",
        "HASTE_MAX_WALL_CLOCK",
        "HASTE_TENANT",
    ]


def test_a_placeholder_counts_as_missing() -> None:
    (problem,) = problems({**OLDER, "AZURE_BATCH_URL": "https://<account>.batch.azure.com"})
    assert "still holds the placeholder <account>" in problem
    assert Settings.load({**OLDER, "AZURE_BATCH_DOCKER_IMAGE": "<image>"}).docker_image == ""


def test_settings_of_one_mode_are_demanded_only_there() -> None:
    assert Settings.load({"RUNNER_TYPE": "local"}).runner_type is RunnerType.LOCAL
    assert [problem.partition(":")[0] for problem in problems({})] == [
        "AZURE_BATCH_URL",
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
    ]
    without_storage = {**SHARED, "AZURE_BATCH_OUTPUT_CONTAINER_URL": ""}
    assert [problem.partition(":")[0] for problem in problems(without_storage)] == [
        "AZURE_BATCH_OUTPUT_CONTAINER_URL"
    ]
    (problem,) = problems({**OLDER, "AZURE_BATCH_ACCOUNT_KEY": "a-key"})
    assert problem.startswith("AZURE_BATCH_ACCOUNT_NAME")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"AZURE_BATCH_MANAGE_POOLS": "true"}, "AZURE_BATCH_MANAGE_POOLS"),
        ({"HASTE_ALLOWED_CONTAINERS": f"{CONTAINER},{FOREIGN}"}, "HASTE_ALLOWED_CONTAINERS"),
        ({"HASTE_ALLOWED_CONTAINERS": f"{CONTAINER}-2"}, "HASTE_ALLOWED_CONTAINERS"),
        ({"AZURE_BATCH_URL": "http://account.region.batch.azure.com"}, "AZURE_BATCH_URL"),
        ({"AZURE_BATCH_OUTPUT_CONTAINER_URL": SIGNED}, "AZURE_BATCH_OUTPUT_CONTAINER_URL"),
        ({"AZURE_BATCH_TRAINING_POOL_IDS": "a pool,b"}, "AZURE_BATCH_TRAINING_POOL_IDS"),
        ({"HASTE_TASK_CAPABILITIES": "ALL"}, "HASTE_TASK_CAPABILITIES"),
        ({"HASTE_SHM_SIZE": "2g --privileged"}, "HASTE_SHM_SIZE"),
    ],
)  # fmt: skip
def test_combinations_that_cannot_work_are_named(changes: dict[str, str], name: str) -> None:
    Settings.load(SHARED)
    (problem,) = problems({**SHARED, **changes})
    assert problem.startswith(f"{name}:")
    assert "abcdefgh" not in problem


def test_plain_http_works_with_a_key() -> None:
    key = {"AZURE_BATCH_ACCOUNT_KEY": "c2VjcmV0LWtleQ==", "AZURE_BATCH_ACCOUNT_NAME": "account"}
    settings = Settings.load({**SHARED, **key, "AZURE_BATCH_URL": "http://127.0.0.1:1234"})
    assert settings.url == "http://127.0.0.1:1234"


def test_secrets_are_not_shown() -> None:
    key = {"AZURE_BATCH_ACCOUNT_KEY": "c2VjcmV0LWtleQ==", "AZURE_BATCH_ACCOUNT_NAME": "account"}
    settings = Settings.load({**SHARED, **key})
    assert "c2VjcmV0" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert settings.account_key is not None
    assert settings.account_key.get_secret_value() == "c2VjcmV0LWtleQ=="


def test_the_old_registry_name_is_taken_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="AZURE_BATCH_REGISTRY_SERVER"):
        settings = Settings.load({**OLDER, "AZURE_BATCH_REGISTRY_SERVER_URL": "https://r.azurecr.io/"})
    assert settings.registry_server == "r.azurecr.io"


def test_the_tenant_owns_its_output_container_unless_told_otherwise() -> None:
    tenant = Settings.load(SHARED).tenant
    assert tenant.name == "dev1store-data"
    assert [container.url for container in tenant.containers] == [CONTAINER]
    both = f"{CONTAINER}, https://dev1store.blob.core.windows.net/models"
    named = Settings.load({**SHARED, "HASTE_TENANT": "dev1", "HASTE_ALLOWED_CONTAINERS": both}).tenant
    assert (named.name, len(named.containers)) == ("dev1", 2)


def test_tenants_named_by_long_containers_stay_apart() -> None:
    long = f"https://{'a' * 24}.blob.core.windows.net/{'b' * 40}"
    loaded = [Settings.load({**SHARED, "AZURE_BATCH_OUTPUT_CONTAINER_URL": long + end}) for end in "12"]
    names = {settings.tenant.name for settings in loaded}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PT90M", timedelta(minutes=90)),
        ("p1d", timedelta(days=1)),
        ("P1DT2H", timedelta(hours=26)),
        ("30m", timedelta(minutes=30)),
        ("2d", timedelta(days=2)),
        ("0s", timedelta(0)),
    ],
)
def test_durations_are_iso_8601_or_a_number_with_a_unit(text: str, value: timedelta) -> None:
    assert Settings.load({**SHARED, "HASTE_QUEUE_ALLOWANCE": text}).queue_allowance == value


@pytest.mark.parametrize("text", ["4", "-PT1H", "P", "4 weeks", "1h30m", "PT-5M"])
def test_a_duration_without_a_unit_or_below_zero_is_refused(text: str) -> None:
    (problem,) = problems({**SHARED, "HASTE_QUEUE_ALLOWANCE": text})
    assert problem.startswith("HASTE_QUEUE_ALLOWANCE")


def test_what_widens_isolation_is_reported() -> None:
    assert Settings.load(SHARED).widened == ()
    widened = Settings.load({**SHARED, "HASTE_TASK_MOUNTS_ALL": "yes", "HASTE_TASK_CAPABILITIES": "CHOWN"})
    assert widened.widened == ("HASTE_TASK_MOUNTS_ALL", "HASTE_TASK_CAPABILITIES")


def test_every_setting_is_described_and_named_once() -> None:
    names = setting_names(Settings)
    assert len(names) == len(set(names))
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert names_of(Settings, name)[0].startswith(
            ("AZURE_BATCH_", "HASTE_", "RUNNER_TYPE")
        ) or name.endswith("job_id")
