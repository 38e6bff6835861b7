"""Runs one Spark job of Sluice in a container and keeps its report in blob storage.

    python job.py --reports https://account.blob.core.windows.net/reports backfill --source capture ...

`backfill`, `reconcile` or `repair` gets a folder for its report; what it wrote there is then stored under
`<command>/<time>/` in the container given. The exit code is that of the command, or 1 where only storing failed.
BLOB_CONNSTRING is used where it is set, else the identity.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient


def main() -> int:
    """Run the command, keep its report, give back its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", required=True, metavar="URL", help="address of the blob container for reports")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a job with its options, without --report")
    options = parser.parse_args()
    if not options.command:
        parser.error("which command shall run? For instance: backfill --source capture")
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        code = run([*options.command, "--report", folder])
        return keep(Path(folder), options.reports, options.command[0], code)


def run(command: list[str]) -> int:
    """Run the job as a child, and hand on the signal to end."""
    child = subprocess.Popen([sys.executable, "-m", "service.jobs", *command])  # noqa: S603 - our own program
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    return child.wait()


def keep(folder: Path, url: str, command: str, code: int) -> int:
    """Store every file of the report; a job that did its work but cannot be proved has failed."""
    prefix = f"{command}/{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    try:
        with container(url) as client:
            for path in files:
                with path.open("rb") as body:
                    client.upload_blob(f"{prefix}/{path.relative_to(folder).as_posix()}", body)
    except AzureError as error:
        print(f"job: the report could not be stored at {url}: {error}", file=sys.stderr)  # noqa: T201 - for the log
        return code or 1
    print(f"job: {command} ended with {code}; {len(files)} files of its report are at {url}/{prefix}/")  # noqa: T201 - as above
    return code


def container(url: str) -> ContainerClient:
    """The container for reports."""
    connection = os.environ.get("BLOB_CONNSTRING")
    if connection:
        return ContainerClient.from_connection_string(connection, url.rstrip("/").rsplit("/", 1)[-1])
    return ContainerClient.from_container_url(url, credential=DefaultAzureCredential())


if __name__ == "__main__":
    sys.exit(main())
