"""What the image holds, in a folder instead of a container: the wheel in an environment of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.image.dockerfile import environment, kept, lineage, stages

ROOT = Path(__file__).parents[3]
OTHER_USER = 10001


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv/bin/python"

    @property
    def sluice(self) -> Path:
        return self.folder / "venv/bin/sluice"

    @property
    def spark_submit(self) -> Path:
        return self.folder / "venv/bin/spark-submit"

    def variables(self, image: str = "service") -> dict[str, str]:
        """What the image sets, and nothing of ours."""
        found = environment(lineage(stages((ROOT / "Dockerfile").read_text()), image))
        own = {name: value for name, value in found.items() if not value.startswith(("/opt/", "/usr/lib/jvm"))}
        return {**own, "PATH": f"{self.folder}/venv/bin:/usr/bin:/bin", "HOME": "/nonexistent"}

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*as_other_user(), *command],
            env=self.variables() | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            cwd="/",
        )


def as_other_user() -> list[str]:
    """Begins a command that shall run as the image's user. Only root can; any other user is another user already.

    The new user may read everything, since Python itself may lie in a closed home, but write only what is its own.
    """
    if os.geteuid() != 0:
        return []
    user = ["--reuid", str(OTHER_USER), "--regid", str(OTHER_USER), "--clear-groups"]
    return ["setpriv", *user, "--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]


def build_wheel(folder: Path) -> Path:
    """The wheel from the build context, as the Dockerfile makes it."""
    context = folder / "context"
    ignore = (ROOT / ".dockerignore").read_text()
    tracked = ["pyproject.toml", "constraints.txt", "README.md", "LICENSE"]
    tracked += [str(path.relative_to(ROOT)) for path in (ROOT / "service").rglob("*") if path.is_file()]
    for name in tracked:
        if kept(ignore, name):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(context)]
    subprocess.run(command, check=True, timeout=100)
    shutil.rmtree(context)
    return next(folder.glob("*.whl"))


def new_environment(folder: Path) -> Installed:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=100)
    return Installed(folder)


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder that another user may read: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-image-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def close(folder: Path) -> None:
    """Nobody may write in it any more; root still could, but the tests do not run it as root."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


@pytest.fixture(scope="session")
def wheel(open_folder: Path) -> Path:
    return build_wheel(open_folder)


@pytest.fixture(scope="session")
def installed(open_folder: Path, wheel: Path) -> Installed:
    """The wheel alone is installed; the packages that it needs are lent by the environment of the tests."""
    made = new_environment(open_folder)
    subprocess.run([made.python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)], check=True, timeout=100)
    site = next((open_folder / "venv/lib").glob("python*/site-packages"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    close(open_folder / "venv")
    return made
