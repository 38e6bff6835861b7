"""Bad settings and missing services: a clear message, retried, never a traceback."""

import pytest

from service.local.azurite import free_port
from tests.support.stack import Process, until

FIVE = """\
EVENTHUB_CONNSTRING=nonsense
EVENTHUB_NAME=hub
EVENTHUB_RATELIMIT=-3
CHECKPOINT_INTERVAL=5 parsecs
LEASE_DURATION=5s
BLOB_CONNSTRING=AccountName=a;AccountKey=b;
BLOB_CONTAINER=leases
COSMOS_CONNSTRING=AccountEndpoint=http://127.0.0.1:1/;AccountKey=c2VjcmV0;
COSMOS_DATABASE=d
"""

NOBODY_THERE = {
    "EVENTHUB_CONNSTRING": (
        "Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true;"
    ),
    "BLOB_CONNSTRING": (
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=c2VjcmV0;"
        "BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
    ),
    "COSMOS_CONNSTRING": "AccountEndpoint=http://127.0.0.1:{port}/;AccountKey=c2VjcmV0;",
}


@pytest.mark.parametrize("command", [("run",), ("config", "check")])
def test_five_faults_get_five_messages_and_exit_78(tmp_path, command):
    (tmp_path / "bad.env").write_text(FIVE)
    with Process(*command, "--env-file", str(tmp_path / "bad.env"), folder=tmp_path) as process:
        assert process.process.wait(60) == 78
        lines = process.output().splitlines()
    *faults, hint = lines
    assert len(faults) == 5
    assert all(line.startswith("sluice: ") for line in faults)
    assert "sluice config table" in hint


@pytest.mark.parametrize(
    ("missing", "setting", "word"),
    [
        ("hub", "EVENTHUB_CONNSTRING", "hub"),
        ("blobs", "BLOB_CONNSTRING", "torage"),
        ("cosmos", "COSMOS_CONNSTRING", "osmos"),
    ],
    ids=["hub", "blobs", "cosmos"],
)
def test_a_service_that_is_not_there_is_named_and_tried_again(make_stack, sluice, missing, setting, word):
    stack = make_stack()
    away = {setting: NOBODY_THERE[setting].format(port=free_port())}
    process = sluice("run", "--env-file", str(stack.env_file), **away)
    until(lambda: process.status() and process.status()["faults"], 60, "the fault in /status", process=process)
    until(lambda: word in str(process.status()["faults"]), 60, f"{missing} named", process=process)
    assert process.process.poll() is None
    assert process.get("/healthz")[0] == 200
    assert process.get("/readyz")[0] == 503
    assert process.stop() == 0
    assert "Traceback" not in process.output()
    assert "c2VjcmV0" not in process.output()


def test_a_wrong_key_is_a_set_up_fault_and_no_dead_letter(make_stack, sluice, preload):
    stack = make_stack()
    preload(stack, 10)
    wrong = stack.servers.cosmos.connection_string().replace("AccountKey=C2", "AccountKey=D2")
    process = sluice("run", "--env-file", str(stack.env_file), COSMOS_CONNSTRING=wrong)
    until(lambda: process.status() and process.status()["faults"], 60, "the fault in /status", process=process)
    assert process.records()["failed"] == 0
    assert process.stop() == 0
    assert "Traceback" not in process.output()
