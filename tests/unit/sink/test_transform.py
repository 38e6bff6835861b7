"""The user's own function: how it is found, called, and tried."""

import pytest

from service.errors import BadSettings
from service.sink.transform import Transform, try_transform
from service.source.events import Event

EVENT = Event(5, "1", 0, b"", {b"tenant": b"x"})


def test_it_may_ask_for_the_event():
    transform = Transform(
        lambda document, event: {**document, "sequence": event.sequence, "partition": event.partition}
    )
    assert transform({"id": "a"}, EVENT, "3") == [{"id": "a", "sequence": 5, "partition": "3"}]


def test_it_is_loaded_by_name_also_from_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / "my_transform.py").write_text(
        "def work(document):\n    return None if document.get('skip') else document\n"
    )
    monkeypatch.chdir(tmp_path)
    transform = Transform.load("my_transform:work")
    assert transform({"skip": True}, EVENT, "0") == []


@pytest.mark.parametrize(
    "name", ["nonsense", "no_such_module_here:f", "json:no_such", "json:", "asyncio:sleep", "sys:path"]
)
def test_what_cannot_be_loaded_says_so(name):
    with pytest.raises(BadSettings, match="DOCUMENT_TRANSFORM"):
        Transform.load(name)


def test_trying_shows_what_becomes_of_each_line():
    def work(document):
        return [document, document] if document["n"] else None

    trials = try_transform(Transform(work), [b'{"n":1}', b"", b'{"n":0}', b"{", b"{}"])
    assert [(trial.line, trial.after, trial.fault is None) for trial in trials] == [
        (1, ('{"n":1}', '{"n":1}'), True),
        (3, (), True),
        (4, (), False),
        (5, (), False),
    ]
    assert trials[3].fault == "KeyError: 'n'"
