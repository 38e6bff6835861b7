"""The ops page in a real browser, on a real `sluice run`: it shows what /status says, and says when nobody answers."""

import re
import signal
import time

import pytest

from tests.browser.conftest import IMAGE
from tests.support.stack import until

pytestmark = pytest.mark.browser

UNKNOWN = "\N{EN DASH}"
COUNTED = ("received", "committed", "superseded", "dropped", "failed", "retried")


def url(process):
    return f"http://127.0.0.1:{process.port}/"


def whole(number):
    return UNKNOWN if number is None else f"{number:,.0f}"


ROWS = """
    [...document.querySelectorAll('#partitions tr')]
        .map(row => [...row.children].slice(0, 6).map(cell => cell.textContent))
"""
ANSWERS = """
    (lagThen, lagNow) => {
        samples.length = 0;
        for (let second = 0; second <= 30; second += 1) {
            const lag = lagThen + (lagNow - lagThen) * second / 30;
            const counted = { committed: second * 1000, received: second * 1000, ru: second * 6000 };
            samples.push({ life: 'a', held: '0 1', at: second * 1000, second, lag, ...counted });
        }
        const last = samples.at(-1);
        return [perSecond('committed', last), perSecond('ru', last), catchUp(last)];
    }
"""
"""Half a minute of answers, at once: 1,000 records/s at 6 RU each, and a lag that goes from one figure to another."""
UPDATE = """
    (async () => {
        const status = await (await fetch('status')).json();
        status.partitions.forEach(each => { each.lag += 1; each.checkpoint.sequence += 1; each.backlog += 1; });
        const began = performance.now();
        show(status);
        document.body.offsetHeight;
        return performance.now() - began;
    })()
"""
"""How long it takes to show an answer in which every row is new and to lay the page out, in milliseconds."""


def rows(page):
    """The table of partitions: the six columns that are always there."""
    return page.evaluate(ROWS)


def shown(page):
    """The figures on the page."""
    names = (*COUNTED, "host", "backlog-items", "backlog-records", "backlog-records-limit", "lag", "ru-note", "held")
    return {name: page.text(name) for name in names} | {"rows": rows(page)}


def said(status):
    """The same as /status has them."""
    records, backlog = status["records"], status["backlog"]
    per_record = f"{status['ru'] / (records['committed'] + records['superseded']):.2f}".rstrip("0").rstrip(".")
    return {name: whole(records[name]) for name in COUNTED} | {
        "host": status["host"],
        "backlog-items": whole(backlog["items"]),
        "backlog-records": whole(backlog["records"]),
        "backlog-records-limit": whole(backlog["limits"]["records"]),
        "lag": whole(sum(row["lag"] for row in status["partitions"])),
        "ru-note": f"{per_record} RU per record since start",
        "held": f"{len(status['partitions'])} of {status['partitions_in_hub']}",
        "rows": [
            [
                row["id"],
                whole(row["epoch"]),
                whole(row["checkpoint"] and row["checkpoint"]["sequence"]),
                whole(row["lag"]),
                whole(row["backlog"]),
                whole(row["done_ahead"]),
            ]
            for row in sorted(status["partitions"], key=lambda row: int(row["id"]))
        ],
    }


def until_equal(page, process):
    """Wait until the page shows what /status says; gives what it shows."""
    seen = {}

    def equal():
        seen.update(page=shown(page), status=said(process.status()))
        return seen["page"] == seen["status"]

    try:
        until(equal, 20, "page and /status agree", process=process)
    except AssertionError:
        assert seen["page"] == seen["status"]
        raise
    return seen["page"]


def is_clean(page, process):
    """No complaint of the browser's, and nothing asked of anybody else."""
    assert page.errors() == []
    asked = set(page.requests())
    assert asked == {url(process), f"{url(process)}status"}


def no_sideways_scroll(page):
    width, seen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return width <= seen


def test_the_figures_are_those_of_status_and_follow_it(browser, stack, publish, consumer):
    page = browser.open(url(consumer))
    before = until_equal(page, consumer)
    assert (before["committed"], before["failed"]) == ("400", "3")
    assert page.text("state-word") == "ready"
    assert page.evaluate("document.title") == f"ready · {consumer.status()['host']}"

    # A record of partition 2 is stuck: backlog, lag and done-ahead of its partition grow, and nobody else's.
    stack.call(lambda: stack.container.faults.fail_next(10**6, 449, scope="operation", document_id="stuck"))
    publish(2, ["stuck", *(f"behind-{number}" for number in range(1200))])
    until(lambda: consumer.records()["committed"] == 1600, 20, "all but the stuck one", process=consumer)
    stuck = until_equal(page, consumer)
    assert stuck["rows"][2] == ["2", before["rows"][2][1], "99", "1,201", "1", "1,200"]
    assert [stuck["rows"][other] for other in (0, 1, 3)] == [before["rows"][other] for other in (0, 1, 3)]
    assert stuck["backlog-items"] == "1"
    assert re.fullmatch(r"449: \d+", page.text("retried-by"))
    stack.call(stack.container.faults.clear)
    until(lambda: [row["lag"] for row in consumer.status()["partitions"]] == [0] * 4, 20, "at rest", process=consumer)
    assert until_equal(page, consumer)["rows"][2][2:] == ["1,300", "0", "0", "0"]
    is_clean(page, consumer)


def test_a_hostile_reason_of_a_dead_letter_is_shown_as_text(browser, consumer):
    page = browser.open(url(consumer))
    reason = f"the transform raised {IMAGE}: 3"
    until(lambda: page.text("failed-by") == reason, 20, reason)
    assert page.evaluate("[document.images.length, typeof hit]") == [0, "undefined"]
    is_clean(page, consumer)


def test_hostile_text_in_any_value_is_shown_as_text(browser, feed):
    """Also where a number should be. And were it tried: the browser refuses to make HTML of it."""
    feed.status |= {
        "host": IMAGE,
        "hosts": [IMAGE],
        "faults": [IMAGE],
        "not_ready": IMAGE,
        "seconds": IMAGE,
        "ru": IMAGE,
    }
    feed.status["records"] = dict.fromkeys(feed.status["records"], IMAGE)
    feed.status["retried"] = {IMAGE: IMAGE}
    feed.status["backlog"] |= {"items": IMAGE, "bytes": IMAGE, "paused": True, "paused_by": [IMAGE]}
    feed.status["partitions"] = [dict.fromkeys(feed.status["partitions"][0], IMAGE)]
    page = browser.open(feed.url)
    until(lambda: page.text("host") == IMAGE, 20, "the page shows it")
    assert rows(page) == [[IMAGE, IMAGE, UNKNOWN, IMAGE, IMAGE, IMAGE]]
    assert page.text("committed") == IMAGE
    assert page.text("retried-by") == f"{IMAGE}: {IMAGE}"
    assert IMAGE in page.text("state-why")
    assert page.text("faults") == IMAGE
    assert page.evaluate("[document.images.length, typeof hit]") == [0, "undefined"]
    assert page.errors() == []
    refused = page.evaluate("(() => { try { document.body.innerHTML = '<b>' } catch (error) { return error.name } })()")
    assert refused == "TypeError"
    other = page.evaluate("fetch('http://127.0.0.1:1/').catch(error => error.name)")
    assert other == "TypeError"
    assert any("Content Security Policy" in error for error in page.errors())


def test_it_says_when_nobody_answers_and_recovers_by_itself(browser, start):
    first = start("killed")
    page = browser.open(url(first), width=400)
    until(lambda: page.text("host") == first.status()["host"], 20, "the first", process=first)
    first.signal(signal.SIGKILL)
    first.process.wait()
    killed_at = time.time()
    until(lambda: page.text("state-word").startswith("no answer since "), 10, "it says so")
    since = page.text("state-word").removeprefix("no answer since ")
    assert since in {time.strftime("%H:%M:%S", time.localtime(killed_at - back)) for back in range(4)}
    assert page.evaluate("document.body.className") == "stale"
    assert page.evaluate("document.title") == "no answer · Sluice"
    assert no_sideways_scroll(page)
    second = start("killed", first.port)
    host = second.status()["host"]
    until(lambda: page.text("host") == host, 15, "the second", process=second)
    assert not page.text("state-word").startswith("no answer")
    assert page.evaluate("document.body.className") == ""
    # The browser itself notes each request that failed; the page adds nothing to that.
    assert {error for error in page.errors() if "ERR_CONNECTION_REFUSED" not in error} == set()


def test_several_workers_are_shown_as_their_sum(browser, start):
    replica = start("several", WORKERS=2, EVENTHUB_RATELIMIT=2000)
    page = browser.open(url(replica))
    until(lambda: len((replica.status() or {}).get("partitions", [])) == 4, 30, "all partitions", process=replica)
    until(lambda: replica.records()["committed"] >= 400, 30, "committed", process=replica)
    until_equal(page, replica)
    assert page.text("workers") == " (2 workers)"
    assert page.text("state-word") == "ready"
    until(lambda: page.text("rate-limit") == "2,000", 20, "the whole rate is shared out", process=replica)
    is_clean(page, replica)


def test_the_state_and_its_reason(browser, feed):
    page = browser.open(feed.url)

    def state():
        return page.text("state-word"), page.text("state-why"), page.text("faults")

    def until_state(*expected):
        page.evaluate("look()")  # now, and not within a second
        until(lambda: state() == expected, 10, f"{expected}, not {state()}")

    until(lambda: page.text("state-word") == "ready", 20, "an answer")
    until_state("ready", "", "")
    feed.status["backlog"] |= {"paused": True, "paused_by": ["bytes"]}
    until_state("paused", "intake is paused: bytes (prefetch included) near the backlog's limit", "")
    feed.status["backlog"] |= {"paused": False, "paused_by": []}
    feed.status["partitions"][3]["paused"] = True
    until_state("paused", "1 partitions are paused, their leases were not renewed in time: 3", "")
    feed.status["partitions"][3]["paused"] = False
    feed.status |= {"not_ready": "the hub refuses us", "faults": ["the hub refuses us", "storage does not answer"]}
    until_state("not ready", "", "the hub refuses usstorage does not answer")
    feed.status |= {"not_ready": "1 of 2 workers are not up", "faults": []}
    until_state("not ready", "1 of 2 workers are not up", "")
    feed.status |= {"not_ready": "draining", "draining": True}
    until_state("draining", "it takes no more, completes what it has, and ends", "")
    feed.status |= {"not_ready": None, "draining": False}
    first = feed.status["host"]
    for host in ("another", first):
        feed.status["host"] = host
        page.evaluate("look()")
        until(lambda host=host: page.text("host") == host, 10, host)
    assert state()[1] == "2 replicas answer in turn: each time the figures are of the host named above"
    # A replica none of whose workers is up yet knows nothing. That is not the same as no lag.
    feed.status = {"host": "replica", "hosts": [], "partitions": [], "not_ready": "2 of 2 workers are not up"}
    page.evaluate("look()")
    until(lambda: page.text("host") == "replica", 10, "the bare answer")
    assert (page.text("lag"), page.text("catch-up"), page.text("rate-limit")) == (
        UNKNOWN,
        "no partition is held",
        UNKNOWN,
    )
    assert page.errors() == []


def test_rates_and_the_time_to_catch_up_come_from_differences(browser, feed):
    page = browser.open(feed.url)
    until(lambda: page.text("state-word") == "ready", 20, "an answer")
    for then, now, words in (
        (90_000, 60_000, "time to catch up: about 1 min"),
        (9_000_000, 8_640_000, "time to catch up: about 12 min"),
        (60_000, 90_000, "not catching up: grows by 1,000/s"),
        (60_000, 60_000, "not catching up: does not fall"),
        (30_000, 4_000, "keeping up: 4.0 s of records"),
        (30_000, 0, "caught up"),
    ):
        assert page.evaluate(f"({ANSWERS})({then}, {now})") == [1000, 6000, words]
    # Before the first answer of the hub a partition has no lag to speak of: that it jumps is no trend.
    page.evaluate(f"({ANSWERS})(9_000_000, 8_640_000)")
    page.evaluate("samples[0].lag = samples[1].lag = 0")
    assert page.evaluate("catchUp(samples.at(-1))") == "time to catch up: about 12 min"
    assert page.evaluate("catchUp({ ...samples.at(-1), held: '0' })") == "time to catch up: measuring"
    # Another process's counters are not compared with these.
    assert page.evaluate("perSecond('committed', { life: 'b', at: 31000, second: 31, committed: 5 })") is None


def test_a_thousand_partitions_fit_400_pixels_and_are_updated_in_time(browser, feed):
    row = feed.status["partitions"][0] | {"epoch": 1234, "lag": 123_456_789, "backlog": 320_000, "done_ahead": 91_069}
    row["checkpoint"] = {"sequence": 123_456_789_012, "offset": "0"}
    feed.status["partitions"] = [row | {"id": str(number)} for number in range(1024)]
    feed.status |= {"host": "sluice--0abc123-" + "x" * 60, "faults": ["f" * 300]}
    page = browser.open(feed.url, width=400, height=800)
    until(lambda: len(rows(page)) == 1024, 20, "all rows")
    assert [each[0] for each in rows(page)] == [str(number) for number in range(1024)]
    assert no_sideways_scroll(page)
    for each in feed.status["partitions"]:
        each["lag"] += 1
    until(lambda: {each[3] for each in rows(page)} == {"123,456,790"}, 10, "every row is updated")
    spent = page.evaluate(UPDATE)
    print(f"{spent:.0f} ms for one update of 1,024 rows")
    assert spent < 1000
    feed.status["partitions"] = feed.status["partitions"][:-1:2]
    until(lambda: [each[0] for each in rows(page)] == [str(number) for number in range(0, 1023, 2)], 10, "half is left")
    page.resize(1280, 900)
    assert no_sideways_scroll(page)
    assert page.errors() == []


def test_a_tab_that_nobody_sees_does_not_ask(browser, feed):
    page = browser.open(feed.url)
    until(lambda: page.text("state-word") == "ready", 20, "an answer")
    in_front = browser.open("about:blank", window=False)
    until(lambda: page.evaluate("document.hidden"), 10, "hidden")
    asked = len(page.requests())
    time.sleep(1.6)  # it would have asked every second
    assert len(page.requests()) <= asked
    feed.status["host"] = "another"
    in_front.close()
    until(lambda: not page.evaluate("document.hidden"), 10, "seen again")
    until(lambda: page.text("host") == "another", 1, "it asks at once")
