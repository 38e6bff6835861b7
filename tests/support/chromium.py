"""A headless Chromium, driven over the DevTools protocol: nothing has to be downloaded to test a page."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # it may run as root, in a container; and sees our own pages only
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-debugging-address=127.0.0.1",
)
START_SECONDS = 30
ANSWER_SECONDS = 20


def chromium() -> str:
    """Its path: CHROMIUM, or the first that is installed. The same places as in deploy/local/setup.sh."""
    found = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), *(path for path in MACOS if Path(path).exists())]
    path = next(filter(None, found), None)
    assert path, "Chromium is not installed: run `make setup`, or set CHROMIUM to the path of one"
    return path


class Chromium:
    """One browser, with a profile of its own that is gone afterwards."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="sluice-chromium-", ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Self:
        folder = Path(self._profile.name)
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [chromium(), *ARGUMENTS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            # It would refuse what looks like a page of another origin.
            self._socket = websocket.create_connection(self._address(folder), suppress_origin=True)
        except BaseException:
            self.__exit__()
            raise
        self._socket.settimeout(ANSWER_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def open(
        self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False, window: bool = True
    ) -> "Page":
        """This address in a window of its own, or in a new tab in front of the others."""
        target = self.call("Target.createTarget", url="about:blank", newWindow=window)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for part in ("Page", "Network", "Runtime", "Log"):
            page.call(f"{part}.enable")
        page.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Page.navigate", url=url)
        return page

    def call(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        """One command; what happens meanwhile is kept with the page that it happened to."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            if page := self._pages.get(answer.get("sessionId", "")):
                page.events.append(answer)

    def _address(self, folder: Path) -> str:
        written = folder / "profile" / "DevToolsActivePort"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            lines = written.read_text().splitlines() if written.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(0.05)
        said = (folder / "log").read_text(errors="replace")[-2000:]
        raise AssertionError(f"Chromium did not start within {START_SECONDS} s:\n{said}")


class Page:
    """One tab."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self.target = target
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self.target)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, element: str) -> str:
        """What stands in the element of this id."""
        return self.evaluate(f"document.getElementById({json.dumps(element)})?.textContent")

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def requests(self) -> list[str]:
        """Every address that the page has asked for."""
        return [each["params"]["request"]["url"] for each in self._seen("Network.requestWillBeSent")]

    def errors(self) -> list[str]:
        """What the console has as a warning or an error, what the script threw, and what the browser complains of."""
        said = [each["params"] for each in self._seen("Runtime.consoleAPICalled")]
        logged = [each["params"]["entry"] for each in self._seen("Log.entryAdded")]
        thrown = [each["params"]["exceptionDetails"] for each in self._seen("Runtime.exceptionThrown")]
        return [
            *(json.dumps(each["args"]) for each in said if each["type"] in {"error", "warning", "assert"}),
            *(f"{each['text']} {each.get('url', '')}" for each in logged if each["level"] in {"error", "warning"}),
            *(json.dumps(each) for each in thrown),
        ]

    def _seen(self, method: str) -> list[dict[str, Any]]:
        self.evaluate("0")  # whatever has happened so far is there before the answer
        return [each for each in self.events if each["method"] == method]
