import pytest

from service.amqp.errors import AmqpError
from service.local.event_hubs.access import MAX_GRANTS, Access, Grants, Unauthorized, covers, resource_path, sas_token
from service.local.tokens import TokenIssuer, TokenRejected

NOW = 1_000_000.0
KEYS = {"name": "key"}


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


def access(issuer=None):
    return Access(KEYS, issuer, clock=lambda: NOW)


def test_a_signature_holds_for_its_resource_and_all_under_it():
    token = sas_token("sb://host:1/Hub", "name", "key", NOW + 10)
    assert access().check_sas(token, "hub") == NOW + 10
    assert access().check_sas(token, "hub/consumergroups/$default/partitions/0") == NOW + 10


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (sas_token("sb://h/hub", "name", "other key", NOW + 10), "InvalidSignature"),
        (sas_token("sb://h/hub", "nobody", "key", NOW + 10), "InvalidSignature"),
        (sas_token("sb://h/hub", "name", "key", NOW + 10).replace("se=1000010", "se=9000000"), "InvalidSignature"),
        (sas_token("sb://h/hub2", "name", "key", NOW + 10), "InvalidAudience"),
        (sas_token("sb://h/hub", "name", "key", NOW), "ExpiredToken"),
        ("", "MalformedToken"),
        ("SharedAccessSignature sr=x", "MalformedToken"),
        ("Bearer x", "MalformedToken"),
    ],
)
def test_a_signature_that_does_not_hold_is_refused(token, reason):
    with pytest.raises(Unauthorized, match=reason):
        access().check_sas(token, "hub")


def test_bearer_tokens_are_checked_by_the_issuer(issuer):
    good = issuer.issue("https://eventhubs.azure.net", nbf=0, exp=NOW + 60)
    assert access(issuer).check_bearer(good) == NOW + 60
    for bad in (
        issuer.issue("https://cosmos.azure.com", nbf=0, exp=NOW + 60),
        issuer.issue("https://eventhubs.azure.net", nbf=0, exp=NOW - 1),
        TokenIssuer(issuer.issuer).issue("https://eventhubs.azure.net", nbf=0, exp=NOW + 60),
        "a.b.c",
        good[:-3] + "AAA",
    ):
        with pytest.raises(Unauthorized, match="InvalidToken"):
            access(issuer).check_bearer(bad)
    with pytest.raises(Unauthorized, match="InvalidIssuer"):
        access().check_bearer(good)


def test_grants_end_when_their_token_does():
    now = NOW
    grants = Grants(lambda: now)
    grants.grant("hub", NOW + 10)
    assert grants.allows("hub/partitions/1")
    assert not grants.allows("hub2")
    assert grants.next_expiry() == NOW + 10
    now = NOW + 10
    assert not grants.allows("hub")
    assert grants.next_expiry() is None
    with pytest.raises(AmqpError) as caught:
        grants.check("hub")
    assert caught.value.condition == "amqp:unauthorized-access"


def test_a_connection_cannot_pile_up_grants_without_end():
    grants = Grants(lambda: NOW)
    for number in range(MAX_GRANTS):
        grants.grant(f"hub{number}", NOW + 1)
    grants.grant("hub0", NOW + 2)
    with pytest.raises(Unauthorized):
        grants.grant("one more", NOW + 1)


def test_resources_are_compared_by_path():
    assert resource_path("sb://127.0.0.1:5/Hub/ConsumerGroups/X/") == "hub/consumergroups/x"
    assert resource_path("amqps://h/hub") == resource_path("hub") == "hub"
    assert covers("", "anything")
    assert not covers("hub", "hubs")


def test_an_issuer_refuses_what_is_not_its_own(issuer):
    token = issuer.issue("aud", lifetime_seconds=10)
    assert issuer.verify(token, "aud/")["iss"].startswith("https://sts.windows.net/")
    assert issuer.verify(token, ["x", "aud"])["tid"] == issuer.tenant
    for audience, now in (("other", None), ("aud", 1e12), ("aud", 0.0)):
        with pytest.raises(TokenRejected):
            issuer.verify(token, audience, now)
    with pytest.raises(TokenRejected, match="malformed"):
        issuer.verify("x" * 10, "aud")
    with pytest.raises(TokenRejected, match="too long"):
        issuer.verify("x" * 100_000, "aud")
