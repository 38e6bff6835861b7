"""The limit of memory is found wherever it is set, and the backlog keeps within it."""

import resource
from fractions import Fraction

import pytest

from service import options
from service.config import Settings
from service.memory import memory_limit

GIB = 1024**3
MIB = 1024**2


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """A tree of cgroups with these files; gives the limit that is found in it."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def make(membership, **files):
        (tmp_path / "membership").write_text(membership)
        for name, text in files.items():
            file = tmp_path / name.replace("__", "/").replace("_max", ".max").replace("_limit", ".limit")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        return memory_limit(tmp_path / "membership", tmp_path)

    return make


def test_a_container_of_cgroup_2_is_its_own_root(cgroup):
    assert cgroup("0::/\n", memory_max=GIB) == GIB


def test_no_limit_is_no_limit(cgroup):
    assert cgroup("0::/\n", memory_max="max") is None
    assert cgroup("4:memory:/\n", memory__memory_limit_in_bytes=9223372036854771712) is None


def test_the_group_of_the_process_counts_where_it_is_seen_from_outside(cgroup):
    assert cgroup("0::/app\n", app__memory_max=GIB, memory_max="max") == GIB
    assert cgroup("5:cpu:/\n4:memory:/app\n", memory__app__memory_limit_in_bytes=2 * GIB) == 2 * GIB


def test_a_system_without_cgroups_has_no_limit_of_theirs(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory_limit(tmp_path / "nothing", tmp_path) is None


def test_a_limit_of_the_process_itself_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (GIB, GIB))
    assert memory_limit(tmp_path / "nothing", tmp_path) == GIB


@pytest.mark.parametrize(("limit", "workers", "allowed"), [
    (None, 1, 512 * MIB),
    (4 * GIB, 1, 512 * MIB),
    (GIB, 1, 416 * MIB),
    (GIB // 2, 1, 160 * MIB),
    (GIB, 2, 320 * MIB),
    (128 * MIB, 1, 16 * MIB),
])  # fmt: skip
def test_the_backlog_keeps_within_the_memory_there_is(monkeypatch, limit, workers, allowed):
    monkeypatch.setattr(options, "memory_limit", lambda: limit)
    settings = Settings(workers=workers)
    assert options.backlog_bytes(settings) == allowed
    assert options.backlog(settings, Fraction(1)).bytes == allowed
