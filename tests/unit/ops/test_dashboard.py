"""The ops page: what is served at `/`, and what the page may and may not do."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import aiohttp
import pytest

from service.ops.dashboard import PAGE
from service.ops.http import OpsPages

TEXT = PAGE.read_text(encoding="utf-8")


class Parsed(HTMLParser):
    """Every element with its attributes, and what stands within style and script."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, list[str]] = {"style": [], "script": []}
        self._open = ""
        self.feed(TEXT)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.inline:
            self.inline[tag].append("")

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open in self.inline:
            self.inline[self._open][-1] += data


@pytest.fixture(scope="module")
def parsed():
    return Parsed()


@pytest.fixture(scope="module")
def script(parsed):
    return "".join(parsed.inline["script"])


@pytest.fixture
async def get():
    """Asks ops pages that know nothing but their names."""

    async def status():
        return {"host": "a"}

    async def metrics():
        return b"", "text/plain"

    pages = OpsPages(status=status, not_ready=lambda: "draining", metrics=metrics)
    async with pages.serving("127.0.0.1", 0) as port, aiohttp.ClientSession() as session:

        async def ask(path):
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, answer.headers, await answer.read()

        yield ask


def policy(headers):
    """The policy as a mapping from directive to sources."""
    parts = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: sources for name, *sources in parts}


async def test_the_page_is_served_at_the_root_and_kept_by_nobody(get):
    status, headers, body = await get("/")
    assert status == 200
    assert body.decode() == TEXT
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"


async def test_the_policy_allows_this_style_and_this_script_and_asking_this_server(get, parsed):
    allowed = policy((await get("/"))[1])
    for tag in ("style", "script"):
        (text,) = parsed.inline[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed.pop(f"{tag}-src") == [f"'sha256-{digest}'"]
    assert allowed == {
        "default-src": ["'none'"],
        "connect-src": ["'self'"],
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["'none'"],
    }


async def test_status_says_why_it_is_not_ready_and_is_kept_by_nobody(get):
    _, headers, body = await get("/status")
    assert body == b'{"host":"a","not_ready":"draining"}'
    assert headers["Cache-Control"] == "no-store"


def test_every_id_that_the_script_uses_is_on_the_page_once(parsed, script):
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"\b(?:at|text|meter|chart)\('([^']+)'", script))
    used |= set(re.findall(r"\b(?:meter|chart)\('[^']+', '([^']+)'", script))
    assert len(used) > 40
    assert used <= set(ids), used - set(ids)
    # No id is put together from parts, so the above has seen them all.
    assert set(re.findall(r"\b(?:at|text|meter|chart)\(([a-z]\w*)", script)) <= {"id", "words"}
    labels = {attributes.get("aria-labelledby") for _, attributes in parsed.elements} - {None}
    assert set(ids) == used | labels


def test_nothing_is_fetched_from_anywhere_else(parsed):
    addresses = {
        value
        for _, attributes in parsed.elements
        for name, value in attributes.items()
        if name in {"src", "srcset", "href", "action", "data", "poster", "background", "ping"}
    }
    assert addresses == {"data:,", "status", "metrics"}
    assert re.findall(r"fetch\(([^,)]*)", TEXT) == ["'status'"]
    for word in (
        "//cdn",
        "http:",
        "https:",
        "ws:",
        "wss:",
        "@import",
        "url(",
        "import(",
        "WebSocket",
        "XMLHttp",
        "Beacon",
    ):
        assert word not in TEXT, word


def test_it_makes_no_html_of_text_and_has_no_actions(parsed, script):
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "setAttribute('on",
    ):
        assert word not in script, word
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"form", "button", "input", "iframe", "object", "embed", "base", "img"}
    # The policy would refuse them: styles and handlers that stand in attributes.
    assert not [name for _, attributes in parsed.elements for name in attributes if name == "style" or name[:2] == "on"]


def test_tables_are_tables_and_charts_have_names(parsed):
    headings = [attributes for tag, attributes in parsed.elements if tag == "th"]
    assert all(attributes.get("scope") in {"col", "row"} for attributes in headings)
    assert all("aria-labelledby" in attributes for tag, attributes in parsed.elements if tag == "table")
    assert all(attributes.get("aria-label") for tag, attributes in parsed.elements if tag == "svg")
    # One place is read aloud when it changes: the state.
    assert [attributes["id"] for _, attributes in parsed.elements if attributes.get("role") == "status"] == ["state"]
