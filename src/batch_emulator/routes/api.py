"""Every operation of the Azure Batch data plane, as the official SDKs send them: the API as data.

`older` is the name in azure-batch 14.2 (empty where it has none), `name` the one in 15.1; operations that
15.1 has dropped carry a name in its style and are marked by `dropped`.

Source: the operations of azure-batch 14.2.0 and 15.1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ApiOperation:
    """One operation of the API."""

    method: str
    path: str
    name: str
    older: str
    dropped: bool = False


API: Final = (
    ApiOperation("GET", "/applications", "list_applications", "application.list"),
    ApiOperation("GET", "/applications/{applicationId}", "get_application", "application.get"),
    ApiOperation("GET", "/certificates", "list_certificates", "certificate.list", dropped=True),
    ApiOperation("POST", "/certificates", "create_certificate", "certificate.add", dropped=True),
    ApiOperation(
        "DELETE",
        "/certificates(thumbprintAlgorithm={thumbprintAlgorithm},thumbprint={thumbprint})",
        "delete_certificate",
        "certificate.delete",
        dropped=True,
    ),
    ApiOperation(
        "GET",
        "/certificates(thumbprintAlgorithm={thumbprintAlgorithm},thumbprint={thumbprint})",
        "get_certificate",
        "certificate.get",
        dropped=True,
    ),
    ApiOperation(
        "POST",
        "/certificates(thumbprintAlgorithm={thumbprintAlgorithm},thumbprint={thumbprint})/canceldelete",
        "cancel_certificate_deletion",
        "certificate.cancel_deletion",
        dropped=True,
    ),
    ApiOperation("GET", "/jobs", "list_jobs", "job.list"),
    ApiOperation("POST", "/jobs", "create_job", "job.add"),
    ApiOperation("DELETE", "/jobs/{jobId}", "delete_job", "job.delete"),
    ApiOperation("GET", "/jobs/{jobId}", "get_job", "job.get"),
    ApiOperation("PATCH", "/jobs/{jobId}", "update_job", "job.patch"),
    ApiOperation("PUT", "/jobs/{jobId}", "replace_job", "job.update"),
    ApiOperation("POST", "/jobs/{jobId}/addtaskcollection", "create_task_collection", "task.add_collection"),
    ApiOperation("POST", "/jobs/{jobId}/disable", "disable_job", "job.disable"),
    ApiOperation("POST", "/jobs/{jobId}/enable", "enable_job", "job.enable"),
    ApiOperation(
        "GET",
        "/jobs/{jobId}/jobpreparationandreleasetaskstatus",
        "list_job_preparation_and_release_task_status",
        "job.list_preparation_and_release_task_status",
    ),
    ApiOperation("GET", "/jobs/{jobId}/taskcounts", "get_job_task_counts", "job.get_task_counts"),
    ApiOperation("GET", "/jobs/{jobId}/tasks", "list_tasks", "task.list"),
    ApiOperation("POST", "/jobs/{jobId}/tasks", "create_task", "task.add"),
    ApiOperation("DELETE", "/jobs/{jobId}/tasks/{taskId}", "delete_task", "task.delete"),
    ApiOperation("GET", "/jobs/{jobId}/tasks/{taskId}", "get_task", "task.get"),
    ApiOperation("PUT", "/jobs/{jobId}/tasks/{taskId}", "replace_task", "task.update"),
    ApiOperation("GET", "/jobs/{jobId}/tasks/{taskId}/files", "list_task_files", "file.list_from_task"),
    ApiOperation(
        "DELETE", "/jobs/{jobId}/tasks/{taskId}/files/{filePath}", "delete_task_file", "file.delete_from_task"
    ),
    ApiOperation(
        "GET", "/jobs/{jobId}/tasks/{taskId}/files/{filePath}", "download_task_file", "file.get_from_task"
    ),
    ApiOperation(
        "HEAD",
        "/jobs/{jobId}/tasks/{taskId}/files/{filePath}",
        "get_task_file_properties",
        "file.get_properties_from_task",
    ),
    ApiOperation("POST", "/jobs/{jobId}/tasks/{taskId}/reactivate", "reactivate_task", "task.reactivate"),
    ApiOperation("GET", "/jobs/{jobId}/tasks/{taskId}/subtasksinfo", "list_subtasks", "task.list_subtasks"),
    ApiOperation("POST", "/jobs/{jobId}/tasks/{taskId}/terminate", "terminate_task", "task.terminate"),
    ApiOperation("POST", "/jobs/{jobId}/terminate", "terminate_job", "job.terminate"),
    ApiOperation("GET", "/jobschedules", "list_job_schedules", "job_schedule.list"),
    ApiOperation("POST", "/jobschedules", "create_job_schedule", "job_schedule.add"),
    ApiOperation("DELETE", "/jobschedules/{jobScheduleId}", "delete_job_schedule", "job_schedule.delete"),
    ApiOperation("GET", "/jobschedules/{jobScheduleId}", "get_job_schedule", "job_schedule.get"),
    ApiOperation("HEAD", "/jobschedules/{jobScheduleId}", "job_schedule_exists", "job_schedule.exists"),
    ApiOperation("PATCH", "/jobschedules/{jobScheduleId}", "update_job_schedule", "job_schedule.patch"),
    ApiOperation("PUT", "/jobschedules/{jobScheduleId}", "replace_job_schedule", "job_schedule.update"),
    ApiOperation(
        "POST", "/jobschedules/{jobScheduleId}/disable", "disable_job_schedule", "job_schedule.disable"
    ),
    ApiOperation(
        "POST", "/jobschedules/{jobScheduleId}/enable", "enable_job_schedule", "job_schedule.enable"
    ),
    ApiOperation(
        "GET", "/jobschedules/{jobScheduleId}/jobs", "list_jobs_from_schedule", "job.list_from_job_schedule"
    ),
    ApiOperation(
        "POST", "/jobschedules/{jobScheduleId}/terminate", "terminate_job_schedule", "job_schedule.terminate"
    ),
    ApiOperation("GET", "/nodecounts", "list_pool_node_counts", "account.list_pool_node_counts"),
    ApiOperation("GET", "/pools", "list_pools", "pool.list"),
    ApiOperation("POST", "/pools", "create_pool", "pool.add"),
    ApiOperation("DELETE", "/pools/{poolId}", "delete_pool", "pool.delete"),
    ApiOperation("GET", "/pools/{poolId}", "get_pool", "pool.get"),
    ApiOperation("HEAD", "/pools/{poolId}", "pool_exists", "pool.exists"),
    ApiOperation("PATCH", "/pools/{poolId}", "update_pool", "pool.patch"),
    ApiOperation(
        "POST", "/pools/{poolId}/disableautoscale", "disable_pool_auto_scale", "pool.disable_auto_scale"
    ),
    ApiOperation(
        "POST", "/pools/{poolId}/enableautoscale", "enable_pool_auto_scale", "pool.enable_auto_scale"
    ),
    ApiOperation(
        "POST", "/pools/{poolId}/evaluateautoscale", "evaluate_pool_auto_scale", "pool.evaluate_auto_scale"
    ),
    ApiOperation("GET", "/pools/{poolId}/nodes", "list_nodes", "compute_node.list"),
    ApiOperation("GET", "/pools/{poolId}/nodes/{nodeId}", "get_node", "compute_node.get"),
    ApiOperation("POST", "/pools/{poolId}/nodes/{nodeId}/deallocate", "deallocate_node", ""),
    ApiOperation(
        "POST",
        "/pools/{poolId}/nodes/{nodeId}/disablescheduling",
        "disable_node_scheduling",
        "compute_node.disable_scheduling",
    ),
    ApiOperation(
        "POST",
        "/pools/{poolId}/nodes/{nodeId}/enablescheduling",
        "enable_node_scheduling",
        "compute_node.enable_scheduling",
    ),
    ApiOperation(
        "GET",
        "/pools/{poolId}/nodes/{nodeId}/extensions",
        "list_node_extensions",
        "compute_node_extension.list",
    ),
    ApiOperation(
        "GET",
        "/pools/{poolId}/nodes/{nodeId}/extensions/{extensionName}",
        "get_node_extension",
        "compute_node_extension.get",
    ),
    ApiOperation(
        "GET", "/pools/{poolId}/nodes/{nodeId}/files", "list_node_files", "file.list_from_compute_node"
    ),
    ApiOperation(
        "DELETE",
        "/pools/{poolId}/nodes/{nodeId}/files/{filePath}",
        "delete_node_file",
        "file.delete_from_compute_node",
    ),
    ApiOperation(
        "GET",
        "/pools/{poolId}/nodes/{nodeId}/files/{filePath}",
        "download_node_file",
        "file.get_from_compute_node",
    ),
    ApiOperation(
        "HEAD",
        "/pools/{poolId}/nodes/{nodeId}/files/{filePath}",
        "get_node_file_properties",
        "file.get_properties_from_compute_node",
    ),
    ApiOperation(
        "GET",
        "/pools/{poolId}/nodes/{nodeId}/rdp",
        "get_node_remote_desktop",
        "compute_node.get_remote_desktop",
        dropped=True,
    ),
    ApiOperation("POST", "/pools/{poolId}/nodes/{nodeId}/reboot", "reboot_node", "compute_node.reboot"),
    ApiOperation("POST", "/pools/{poolId}/nodes/{nodeId}/reimage", "reimage_node", "compute_node.reimage"),
    ApiOperation(
        "GET",
        "/pools/{poolId}/nodes/{nodeId}/remoteloginsettings",
        "get_node_remote_login_settings",
        "compute_node.get_remote_login_settings",
    ),
    ApiOperation("POST", "/pools/{poolId}/nodes/{nodeId}/start", "start_node", ""),
    ApiOperation(
        "POST",
        "/pools/{poolId}/nodes/{nodeId}/uploadbatchservicelogs",
        "upload_node_logs",
        "compute_node.upload_batch_service_logs",
    ),
    ApiOperation("POST", "/pools/{poolId}/nodes/{nodeId}/users", "create_node_user", "compute_node.add_user"),
    ApiOperation(
        "DELETE",
        "/pools/{poolId}/nodes/{nodeId}/users/{userName}",
        "delete_node_user",
        "compute_node.delete_user",
    ),
    ApiOperation(
        "PUT",
        "/pools/{poolId}/nodes/{nodeId}/users/{userName}",
        "replace_node_user",
        "compute_node.update_user",
    ),
    ApiOperation("POST", "/pools/{poolId}/removenodes", "remove_nodes", "pool.remove_nodes"),
    ApiOperation("POST", "/pools/{poolId}/resize", "resize_pool", "pool.resize"),
    ApiOperation("POST", "/pools/{poolId}/stopresize", "stop_pool_resize", "pool.stop_resize"),
    ApiOperation(
        "POST", "/pools/{poolId}/updateproperties", "replace_pool_properties", "pool.update_properties"
    ),
    ApiOperation("GET", "/poolusagemetrics", "list_pool_usage_metrics", "pool.list_usage_metrics"),
    ApiOperation("GET", "/supportedimages", "list_supported_images", "account.list_supported_images"),
)
