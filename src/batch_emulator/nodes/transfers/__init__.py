"""Between a task's directory and blob storage: resource files before it runs, output files after."""

from batch_emulator.nodes.transfers.downloads import download_resource_files
from batch_emulator.nodes.transfers.storage import Cancelled, TransferError, Transfers
from batch_emulator.nodes.transfers.uploads import upload_output_files

__all__ = ["Cancelled", "TransferError", "Transfers", "download_resource_files", "upload_output_files"]
