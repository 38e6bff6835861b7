"""SDK exceptions, made into sentences classed by what to do."""

from types import SimpleNamespace

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ServiceRequestError
from azure.eventhub.exceptions import AuthenticationError, ConnectError, ConnectionLostError

from service.errors import Retry, SetupFault
from service.source.faults import of_hub, of_storage
from service.source.hub import Stolen


def _http(status, headers=None):
    response = SimpleNamespace(status_code=status, reason="why", headers=headers or {}, content_type="")
    return HttpResponseError(response=response)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (_http(403), SetupFault, "Storage Blob Data Contributor"),
        (_http(400), SetupFault, "BLOB_CONTAINER"),
        (_http(404), Retry, "404"),
        (_http(500), Retry, "for now"),
        (_http(503), Retry, "for now"),
        (_http(429), Retry, "for now"),
        (ClientAuthenticationError(message="secret"), SetupFault, "identity"),
        (ServiceRequestError("secret"), Retry, "cannot be reached"),
        (TimeoutError(), Retry, "cannot be reached"),
        (OSError("secret"), Retry, "cannot be reached"),
        (KeyError("secret"), Retry, "KeyError"),
    ],
)
def test_storages_errors_say_what_to_do_and_keep_secrets(error, kind, words):
    fault = of_storage(error, "account.example")
    assert type(fault) is kind
    assert words in str(fault)
    assert "account.example" in str(fault)
    assert "secret" not in str(fault)


def test_storages_own_wait_is_kept():
    fault = of_storage(_http(503, {"Retry-After": "7"}), "account.example")
    assert fault.after_seconds == 7


def _hub_error(kind, condition, text="secret"):
    error = kind(text)
    error.error = condition
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (_hub_error(AuthenticationError, "client-error"), SetupFault, "EVENTHUB_CONNSTRING"),
        (_hub_error(ConnectError, "unauthorized-access"), SetupFault, "Azure Event Hubs Data Receiver"),
        (_hub_error(ConnectError, "not-found"), SetupFault, "EVENTHUB_NAME"),
        (_hub_error(ConnectionLostError, "resource-limit-exceeded"), SetupFault, "consumer group of its own"),
        (_hub_error(ConnectError, "server-busy"), Retry, "busy"),
        (_hub_error(ConnectionLostError, "link:detach-forced"), Retry, "detach-forced"),
        (_hub_error(ConnectError, "socket-error"), Retry, "cannot be reached"),
        (TimeoutError(), Retry, "EVENTHUB_CONSUMERGROUP"),
    ],
)
def test_the_hubs_errors_say_what_to_do_and_keep_secrets(error, kind, words):
    fault = of_hub(error, "ns.example", "records")
    assert type(fault) is kind
    assert words in str(fault)
    assert "records at ns.example" in str(fault)
    assert "secret" not in str(fault)


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("New receiver 'x' with higher epoch of '7' is created hence current receiver is disconnected", 7),
        ("Receiver 'x' with a higher epoch '41' already exists. Receiver 'y' with epoch 3 cannot be created", 41),
        ("The link was stolen", None),
    ],
)
def test_a_stolen_link_names_the_other_epoch_where_the_service_does(text, epoch):
    fault = of_hub(_hub_error(ConnectionLostError, "link:stolen", text), "ns.example", "records")
    assert isinstance(fault, Stolen)
    assert fault.epoch == epoch
