"""Runs the JavaScript clients of this folder: a command as JSON in, an answer as JSON out."""

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = 60.0


def install() -> None:
    """Installs the pinned packages if they are not there; `make setup` does the same."""
    with (HERE / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test sessions may start at once
        if not (HERE / "node_modules" / "@azure" / "event-hubs").exists():
            npm = shutil.which("npm")
            assert npm is not None, "npm is not installed: run `make setup`"
            subprocess.run(
                [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"],
                cwd=HERE,
                check=True,
                capture_output=True,
            )


async def run(script: str, **arguments: object) -> dict:
    """The answer of `node <script> <arguments>`; AssertionError with what it said if it failed."""
    await asyncio.to_thread(install)
    process = await asyncio.create_subprocess_exec(
        "node",
        str(HERE / script),
        json.dumps(arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"NO_COLOR": "1"},
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode(errors="replace")[-4000:]
    return json.loads(out.decode().splitlines()[-1])
