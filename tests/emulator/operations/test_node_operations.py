"""Restarting, deallocating and starting nodes, their users, and what they say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.core.rest import HttpRequest

from batch_emulator.errors import BatchError
from batch_emulator.rules import nodes
from batch_emulator.state import Node, NodeState, TaskState
from batch_emulator.testing import PrivateEmulator

from ..core.support import new_job, new_pool, new_task
from ..core.world import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def node(rig: Rig) -> Node:
    (node,) = rig.pool(targetDedicatedNodes=1).nodes.values()
    return node


def test_a_deallocated_node_keeps_its_place_and_can_be_started(rig: Rig, node: Node) -> None:
    task = rig.task(rig.job())
    nodes.deallocate(rig.world, node, "requeue")
    assert node.state is NodeState.DEALLOCATING
    assert task.state is TaskState.ACTIVE
    rig.advance(30)
    assert node.state is NodeState.DEALLOCATED
    assert len(node.pool.nodes) == 1
    assert rig.effects.removed_nodes == [node.id]  # the temporary disk is lost
    rig.advance(3600)
    assert node.state is NodeState.DEALLOCATED

    nodes.start(rig.world, node)

    rig.advance(120)
    assert node.state is NodeState.RUNNING
    assert task.node is node


def test_only_a_deallocated_node_can_be_started_and_only_a_usable_one_deallocated(
    rig: Rig, node: Node
) -> None:
    with pytest.raises(BatchError, match="OperationNotValidOnNode"):
        nodes.start(rig.world, node)
    nodes.deallocate(rig.world, node, "requeue")
    with pytest.raises(BatchError, match="OperationNotValidOnNode"):
        nodes.deallocate(rig.world, node, "requeue")


@pytest.mark.parametrize("reimage", [True, False])
def test_a_restart_after_the_tasks_waits_for_them_and_lets_no_others_in(
    rig: Rig, node: Node, reimage: bool
) -> None:
    job = rig.job()
    running = rig.task(job, "running")
    waiting = rig.task(job, "waiting")

    nodes.reboot(rig.world, node, "taskcompletion", reimage=reimage)

    rig.advance(3600)
    assert running.node is node
    rig.end("running")
    assert node.state is (NodeState.REIMAGING if reimage else NodeState.REBOOTING)
    assert waiting.state is TaskState.ACTIVE
    rig.advance(120)
    assert waiting.node is node


def test_a_node_that_is_lost_while_it_waits_to_restart_forgets_the_restart(rig: Rig) -> None:
    (node,) = rig.pool(targetLowPriorityNodes=1).nodes.values()
    task = rig.task(rig.job())
    nodes.reboot(rig.world, node, "taskcompletion", reimage=False)
    nodes.preempt(rig.world, node)
    rig.advance(300 + 120)
    assert task.node is node
    rig.end("task")
    assert node.state is NodeState.IDLE


def start_node(client: BatchClient, emulator: PrivateEmulator) -> str:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    emulator.advance(150)
    (node,) = client.list_nodes("pool")
    return node.id


def test_the_sdk_deallocates_and_starts_a_node(emulator: PrivateEmulator, client: BatchClient) -> None:
    node_id = start_node(client, emulator)
    # azure-batch 15.1 fails without options, and keeps their model to itself.
    path = f"/pools/pool/nodes/{node_id}/deallocate?api-version=2025-06-01"
    request = HttpRequest("POST", path, json={"nodeDeallocateOption": "Requeue"})
    assert client.send_request(request).status_code == 202
    emulator.advance(30)
    assert client.get_node("pool", node_id).state == batch.BatchNodeState.DEALLOCATED
    start = client.begin_start_node("pool", node_id, polling_interval=0.05)
    emulator.advance(120)
    start.wait(10)
    assert client.get_node("pool", node_id).state == batch.BatchNodeState.IDLE


def test_users_of_a_node(emulator: PrivateEmulator, client: BatchClient) -> None:
    node_id = start_node(client, emulator)
    user = batch.BatchNodeUserCreateOptions(name="ada", is_admin=True, password="not kept")
    client.create_node_user("pool", node_id, user)
    with pytest.raises(ResourceExistsError):
        client.create_node_user("pool", node_id, user)
    later = datetime.now(UTC) + timedelta(days=2)
    client.replace_node_user("pool", node_id, "ada", batch.BatchNodeUserReplaceOptions(expiry_time=later))
    emulator.advance(3 * 24 * 3600)
    with pytest.raises(ResourceNotFoundError) as caught:
        client.delete_node_user("pool", node_id, "ada")
    assert caught.value.error.code == "NodeUserNotFound"
    client.create_node_user("pool", node_id, user)
    client.delete_node_user("pool", node_id, "ada")
    assert "not kept" not in emulator.on_loop(lambda world: repr(world.account))


def test_what_a_node_says_of_its_surroundings(emulator: PrivateEmulator, client: BatchClient) -> None:
    node_id = start_node(client, emulator)
    settings = client.get_node_remote_login_settings("pool", node_id)
    assert (settings.remote_login_ip_address, settings.remote_login_port) == ("10.0.0.2", 22)
    assert list(client.list_node_extensions("pool", node_id)) == []
    with pytest.raises(ResourceNotFoundError) as caught:
        client.get_node_extension("pool", node_id, "any")
    assert caught.value.error.code == "NodeExtensionNotFound"
    with pytest.raises(ResourceNotFoundError) as caught:
        list(client.list_node_extensions("pool", "other"))
    assert caught.value.error.code == "NodeNotFound"


def test_logs_of_nodes_are_not_uploaded_and_extensions_not_installed(
    emulator: PrivateEmulator, client: BatchClient
) -> None:
    node_id = start_node(client, emulator)
    options = batch.UploadBatchServiceLogsOptions(
        container_url="https://nowhere.invalid/logs", start_time=datetime.now(UTC)
    )
    with pytest.raises(HttpResponseError) as caught:
        client.upload_node_logs("pool", node_id, options)
    assert caught.value.error.code == "NotSupportedByEmulator"
    pool = new_pool("extended")
    pool.virtual_machine_configuration.extensions = [
        batch.VMExtension(name="agent", publisher="someone", type="something")
    ]
    with pytest.raises(HttpResponseError) as caught:
        client.create_pool(pool)
    assert caught.value.error.code == "NotSupportedByEmulator"


def test_a_task_has_no_subtasks(client: BatchClient) -> None:
    client.create_job(new_job())
    client.create_task("job", new_task())
    assert list(client.list_subtasks("job", "task")) == []
    with pytest.raises(ResourceNotFoundError):
        list(client.list_subtasks("job", "other"))
