"""Where files lie: the ways to write it, and how Spark gets at blobs."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient, UserDelegationKey

from service.config import Settings
from service.jobs.faults import BadInput
from service.jobs.hadoop_azure import access_to, literal
from service.jobs.storage import Blobs, Folder, open_store

KEY = "a2V5"
KNOWN = f"DefaultEndpointsProtocol=https;AccountName=ours;AccountKey={KEY};EndpointSuffix=core.windows.net"


def opened(path, **settings):
    return open_store(path, Settings(_env_file=None, **settings))


@pytest.mark.parametrize(
    "path",
    [
        "blob://capture/ns/hub",
        "abfss://capture@ours.dfs.core.windows.net/ns/hub",
        "abfs://capture@ours.blob.core.windows.net/ns/hub",
        "wasbs://capture@ours.blob.core.windows.net/ns/hub",
        "https://ours.blob.core.windows.net/capture/ns/hub",
        "https://ours.dfs.core.windows.net/capture/ns/hub",
    ],
)
def test_an_address_in_the_account_of_the_settings_is_opened_with_its_key(path):
    assert opened(path, blob_connstring=KNOWN) == Blobs("capture", "ns/hub", "", KNOWN)


def test_another_account_is_opened_by_the_identity():
    found = opened("abfss://c@other.dfs.core.windows.net/p", blob_connstring=KNOWN)
    assert found == Blobs("c", "p", "https://other.blob.core.windows.net")
    assert found.text() == "https://other.blob.core.windows.net/c/p"
    by_name = opened("abfss://c@our.dfs.core.windows.net/p", blob_connstring=KNOWN)
    assert by_name.connection_string == ""


def test_a_folder_may_be_written_as_a_url():
    assert opened("file:///a/b") == Folder("/a/b")
    assert opened("a/b") == Folder("a/b")


@pytest.mark.parametrize("path", ["s3://bucket/x", "blob:///x", "abfss://nothing", "https://example.com/x"])
def test_an_address_of_no_kind_that_is_known_is_refused(path):
    with pytest.raises(BadInput, match="--path"):
        opened(path)


def test_spark_reads_by_a_signature_for_reading_only_and_never_sees_the_key():
    access = access_to(Blobs("capture", "", "", KNOWN))
    assert access.path("ns/0.avro") == "abfss://capture@ours.dfs.core.windows.net/ns/0.avro"
    assert not any(KEY in value for value in access.options.values())
    assert "sig" not in repr(access)
    signed = parse_qs(access.options["fs.azure.sas.fixed.token"])
    assert signed["sp"] == ["rl"]
    assert signed["sr"] == ["c"]
    assert "fs.azure.abfs.endpoint" not in access.options


def test_a_signature_in_the_connection_string_is_used_as_it_is():
    given = "BlobEndpoint=https://ours.blob.core.windows.net;SharedAccessSignature=sv=2024&sig=abc"
    assert access_to(Blobs("capture", "", "", given)).options["fs.azure.sas.fixed.token"] == "sv=2024&sig=abc"


def test_an_identity_signs_with_a_key_of_its_own(monkeypatch):
    """Azurite gives such keys over TLS and to tokens of Entra only: so the one call to the service is stood in for."""
    asked = []

    def give(_self, begin, end):
        asked.append((begin, end))
        key = UserDelegationKey()
        key.signed_oid = key.signed_tid = "00000000-0000-0000-0000-000000000000"
        key.signed_service, key.signed_version, key.value = "b", "2024-11-04", KEY
        key.signed_start, key.signed_expiry = f"{begin:%Y-%m-%dT%H:%M:%SZ}", f"{end:%Y-%m-%dT%H:%M:%SZ}"
        return key

    monkeypatch.setattr(BlobServiceClient, "get_user_delegation_key", give)
    access = access_to(Blobs("capture", "", "https://ours.blob.core.windows.net"))
    signed = parse_qs(access.options["fs.azure.sas.fixed.token"])
    assert signed["sp"] == ["rl"]
    assert signed["skoid"]
    begin, end = asked[0]
    assert begin < datetime.now(UTC) < end < begin + timedelta(days=7)


def test_azurite_is_reached_by_its_port(azurite, blob_container_name):
    access = access_to(Blobs(blob_container_name, "", "", azurite))
    with ContainerClient.from_connection_string(azurite, blob_container_name) as client:
        host, port = client.url.split("/")[2].split(":")
    assert access.options["fs.azure.abfs.endpoint"] == f"{host}:{port}"
    assert access.root == f"abfs://{blob_container_name}@devstoreaccount1.dfs.core.windows.net"


def test_names_are_no_patterns():
    assert literal("a/[1]{b}*?.avro") == r"a/\[1\]\{b\}\*\?.avro"
