"""Certificates are read when a client is made, and not at each of its requests."""

import ssl

import certifi

from service.source.connect import connect_blobs


async def test_a_file_of_certificates_is_read_once_and_not_at_every_request(azurite, blob_container_name, monkeypatch):
    blobs = connect_blobs(blob_container_name, connection_string=azurite, ca_file=certifi.where())
    read = []
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: read.append(1))
    await blobs.make()
    for _ in range(3):
        assert await blobs.list("") == []
    await blobs.close()
    assert read == []
