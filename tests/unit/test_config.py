"""Settings: every fault at once, in words that say what to do, and never a secret."""

import pytest

from service.config import Settings, load
from service.errors import BadSettings

GOOD = {
    "EVENTHUB_CONNSTRING": "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=hubsecret=",
    "EVENTHUB_NAME": "hub",
    "BLOB_CONNSTRING": "AccountName=a;AccountKey=blobsecret==;",
    "BLOB_CONTAINER": "leases",
    "COSMOS_CONNSTRING": "AccountEndpoint=https://c/;AccountKey=cosmossecret==;",
    "COSMOS_DATABASE": "d",
    "COSMOS_CONTAINER": "c",
}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Load settings from a file with these lines, and from nothing else."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)

    def read(changes=None, **more):
        lines = {**GOOD, **(changes or {}), **more}
        path = tmp_path / "file.env"
        path.write_text("".join(f"{k}={v}\n" for k, v in lines.items() if v is not None))
        return load(path)

    return read


def faults(settings, **changes):
    with pytest.raises(BadSettings) as caught:
        settings(changes)
    return caught.value.faults


def test_good_settings_have_the_documented_defaults(settings):
    read = settings()
    assert read.checkpoint_interval == 5.0
    assert read.allow_backlog_of == 320_000
    assert read.allow_backlog_to == 600.0
    assert read.allow_backlog_bytes == 512 * 1024 * 1024
    assert read.dead_letters_in == "leases-deadletters"
    assert read.eventhub_ratelimit == 0


def test_five_faults_get_five_messages(settings):
    found = faults(
        settings,
        EVENTHUB_RATELIMIT="-3",
        CHECKPOINT_INTERVAL="5 parsecs",
        LEASE_DURATION="5s",
        COSMOS_CONTAINER=None,
        EVENTHUB_CONNSTRING="nonsense",
    )
    assert sorted(fault.split(":")[0] for fault in found) == [
        "CHECKPOINT_INTERVAL",
        "COSMOS_CONTAINER",
        "EVENTHUB_CONNSTRING",
        "EVENTHUB_RATELIMIT",
        "LEASE_DURATION",
    ]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"EVENTHUB_CONNSTRING": None}, "EVENTHUB_CONNSTRING"),
        ({"EVENTHUB_NAMESPACE": "n.servicebus.windows.net"}, "EVENTHUB_CONNSTRING and EVENTHUB_NAMESPACE"),
        ({"EVENTHUB_NAME": None}, "EVENTHUB_NAME"),
        ({"EVENTHUB_CONNSTRING": GOOD["EVENTHUB_CONNSTRING"] + ";EntityPath=other"}, "EVENTHUB_NAME"),
        ({"BLOB_CONNSTRING": "x"}, "BLOB_CONNSTRING"),
        ({"COSMOS_CONNSTRING": "AccountEndpoint=https://c/;"}, "COSMOS_CONNSTRING"),
        ({"COSMOS_CONNSTRING": None, "COSMOS_ENDPOINT": "c.documents.azure.com"}, "COSMOS_ENDPOINT"),
        ({"LEASE_RENEW": "20s"}, "LEASE_RENEW"),
        ({"COSMOS_WRITE_MODE": "guarded", "DOCUMENT_STAMP": ""}, "COSMOS_WRITE_MODE"),
        ({"COSMOS_WRITE": "no"}, "COSMOS_WRITE"),
        ({"DOCUMENT_ID": "id"}, "DOCUMENT_ID"),
        ({"EVENTHUB_START": "yesterday"}, "EVENTHUB_START"),
        ({"EVENTHUB_RATELIMT": "3"}, "EVENTHUB_RATELIMT"),
        ({"ALLOW_BACKLOG_BYTES": "many"}, "ALLOW_BACKLOG_BYTES"),
        ({"COSMOS_BATCH_MAX": "101"}, "COSMOS_BATCH_MAX"),
    ],
)
def test_each_fault_is_named_alone(settings, changes, name):
    (fault,) = faults(settings, **changes)
    assert fault.startswith(f"{name}: ")


def test_no_message_shows_a_secret(settings):
    found = faults(settings, COSMOS_DATABASE=None, EVENTHUB_CONNSTRING="SharedAccessKey=hubsecret=")
    assert not any("secret" in fault for fault in found)
    assert "secret" not in repr(settings())


def test_empty_values_mean_not_given_but_for_the_stamp(settings):
    read = settings(EVENTHUB_NAMESPACE="", EVENTHUB_RATELIMIT="", DOCUMENT_STAMP="")
    assert (read.eventhub_namespace, read.eventhub_ratelimit, read.document_stamp) == (None, 0, "")


def test_the_environment_wins_over_the_file(settings, monkeypatch):
    monkeypatch.setenv("EVENTHUB_RATELIMIT", "7")
    assert settings(EVENTHUB_RATELIMIT="5").eventhub_ratelimit == 7


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("5s", 5), ("10m", 600), ("30", 30), ("1.5 s", 1.5)])
def test_durations_are_read_as_people_write_them(settings, text, seconds):
    assert settings(ALLOW_BACKLOG_TO=text).allow_backlog_to == seconds


def test_a_missing_file_is_a_fault_of_its_own(tmp_path):
    with pytest.raises(BadSettings, match="there is no file"):
        load(tmp_path / "none.env")
