"""The query language: what goes in and what comes out."""

import pytest

from service.local.cosmos.errors import BadRequest, CosmosError
from service.local.cosmos.sql import holds
from service.local.cosmos.sql.execute import Executable
from service.local.cosmos.sql.parser import parse
from service.local.cosmos.sql.plan import ALL_FEATURES, needs_plan, query_plan
from service.local.cosmos.sql.text import query_text

DOCUMENTS = [
    {"id": "0", "key": "a", "n": 0, "tags": [], "o": {"x": 1}, "s": "Straße"},
    {"id": "1", "key": "b", "n": 1, "tags": ["red"], "o": {"x": "1"}, "none": None},
    {"id": "2", "key": "a", "n": 2.5, "tags": ["red", "blue"], "flag": True},
    {"id": "3", "key": "c", "n": "three", "tags": [{"name": "x", "w": 1}], "flag": False},
]


def run(text, **parameters):
    return Executable(parse(text), {f"@{name}": value for name, value in parameters.items()}).over(DOCUMENTS)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("c.n > 0", "12"),
        ("c.n >= 0 AND c.n <= 1", "01"),
        ("c.n = 'three'", "3"),
        ("c.n != 1", "023"),
        ("NOT c.n > 0", "0"),
        ("NOT (c.missing = 1)", ""),
        ("c.missing = 1 OR c.n = 1", "1"),
        ("c.key IN ('a', 'c')", "023"),
        ("c.key NOT IN ('a', 'c')", "1"),
        ("c.n BETWEEN 1 AND 3", "12"),
        ("c.n NOT BETWEEN 1 AND 3", "0"),
        ("IS_DEFINED(c.flag)", "23"),
        ("NOT IS_DEFINED(c.flag)", "01"),
        ("c.flag", "2"),
        ("IS_NULL(c.none)", "1"),
        ("c.none = null", "1"),
        ("c.none != null", ""),
        ("c.o.x = 1", "0"),
        ('c["o"]["x"] = "1"', "1"),
        ("STARTSWITH(c.s, 'Str')", "0"),
        ("STARTSWITH(c.s, 'str', true)", "0"),
        ("STARTSWITH(c.s, 'str')", ""),
        ("CONTAINS(c.s, 'aß') AND ENDSWITH(c.s, 'e')", "0"),
        ("LOWER(c.s) = 'straße' AND LENGTH(c.s) = 6", "0"),
        ("ARRAY_CONTAINS(c.tags, 'red')", "12"),
        ("ARRAY_CONTAINS(c.tags, {'name': 'x'}, true)", "3"),
        ("ARRAY_CONTAINS(c.tags, {'name': 'x'})", ""),
        ("ARRAY_LENGTH(c.tags) = 2", "2"),
        ("IS_NUMBER(c.n) AND c.n % 1 != 0", "2"),
        ("IS_STRING(c.n)", "3"),
        ("ABS(-1) = c.n", "1"),
        ("c.tags[0] = 'red'", "12"),
        ("c.key LIKE '_' AND c.id LIKE '%3%'", "3"),
        ("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'blue')", "2"),
        ("(c.n ?? 0) = 0 AND c.id = '0'", "0"),
        ("c.n = 1 ? true : c.id = '3'", "13"),
        ("c.n + 1 = 2", "1"),
        ("c.key || c.id = 'a2'", "2"),
        ("true", "0123"),
        ("1 = true", ""),
    ],
)
def test_where_keeps_what_it_should(where, ids):
    assert "".join(run(f"SELECT VALUE c.id FROM c WHERE {where}")) == ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT c.id, c.o.x AS y FROM c WHERE c.n = 0", [{"id": "0", "y": 1}]),
        ("SELECT c.missing, c.id FROM c WHERE c.n = 0", [{"id": "0"}]),
        ("SELECT VALUE c.missing FROM c", []),
        ("SELECT 1, c.id, 'x' FROM c WHERE c.n = 0", [{"$1": 1, "id": "0", "$2": "x"}]),
        ("SELECT VALUE {'id': c.id, 't': [c.n, c.missing]} FROM c WHERE c.id = '0'", [{"id": "0", "t": [0]}]),
        ("SELECT 1 AS one", [{"one": 1}]),
        ("SELECT VALUE COUNT(1) FROM c", [4]),
        ("SELECT VALUE COUNT(c.flag) FROM c", [2]),
        ("SELECT COUNT(1) AS n FROM c WHERE c.n = 99", [{"n": 0}]),
        ("SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", [3.5]),
        ("SELECT VALUE SUM(c.n) FROM c", []),
        ("SELECT VALUE AVG(c.n) FROM c WHERE c.n < 2", [0.5]),
        ("SELECT VALUE MAX(c.n) FROM c", ["three"]),
        ("SELECT VALUE MIN(c.n) FROM c", [0]),
        ("SELECT MIN(c.n) AS low, MAX(c.id) AS high FROM c", [{"low": 0, "high": "3"}]),
        (
            "SELECT c.key, COUNT(1) AS n FROM c GROUP BY c.key",
            [{"key": "a", "n": 2}, {"key": "b", "n": 1}, {"key": "c", "n": 1}],
        ),
        ("SELECT VALUE c.key FROM c GROUP BY c.key", ["a", "b", "c"]),
        ("SELECT DISTINCT VALUE c.key FROM c", ["a", "b", "c"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.n DESC", ["3", "2", "1", "0"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.flag, c.id DESC", ["1", "0", "3", "2"]),
        ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.key DESC, c.id ASC", ["3", "1"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 1 LIMIT 2", ["1", "2"]),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE IS_STRING(t)", ["red", "red", "blue"]),
        ("SELECT VALUE t.name FROM t IN c.tags", ["x"]),
        ("SELECT VALUE x FROM c.o.x", [1, "1"]),
        ("SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t = 'red') FROM c WHERE c.id = '2'", [["red"]]),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c WHERE c.id = '2'", [2]),
        ("SELECT VALUE r.id FROM root r WHERE r.n = 1", ["1"]),
        ("SELECT VALUE SUBSTRING(c.s, 0, 3) FROM c WHERE c.id = '0'", ["Str"]),
        (
            "SELECT VALUE ROUND(ST_DISTANCE({type:'Point', coordinates:[0,0]}, {type:'Point', coordinates:[0,1]}))",
            [111195],
        ),
        ("SELECT VALUE c.id FROM c WHERE c.id = 'it''s' -- a comment", []),
    ],
)
def test_select_gives_what_it_should(text, expected):
    assert run(text) == expected


def test_parameters_take_their_values():
    assert run("SELECT VALUE c.id FROM c WHERE c.n = @n OR ARRAY_CONTAINS(@ids, c.id)", n=1, ids=["0"]) == ["0", "1"]


def test_top_may_be_a_parameter():
    assert run("SELECT TOP @n VALUE c.id FROM c", n=1) == ["0"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELEC * FROM c",
        "SELECT FROM c",
        "SELECT * FROM",
        "SELECT * FROM c WHERE",
        "SELECT * FROM c WHERE c.a =",
        "SELECT * FROM c ORDER c.a",
        "SELECT * FROM c extra words here",
        "SELECT * FROM c JOIN t IN c.tags",
        "SELECT d.id FROM c",
        "SELECT VALUE NOSUCH(c.id) FROM c",
        "SELECT VALUE udf.f(c.id) FROM c",
        "SELECT VALUE LOWER() FROM c",
        "SELECT VALUE @missing FROM c",
        "SELECT TOP 'x' * FROM c",
        "SELECT TOP -1 * FROM c",
        "SELECT * FROM c WHERE c.a = 'unclosed",
        "SELECT \x00 FROM c",
        "SELECT VALUE " + "(" * 5000,
        "SELECT VALUE " + "NOT " * 5000 + "true FROM c",
        "SELECT VALUE " + "-" * 5000 + "1",
        "SELECT VALUE " + "[" * 150 + "]" * 150,
        "SELECT VALUE 1" + "+1" * 5000,
        "x" * 300_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_query_is_400_and_never_worse(text):
    with pytest.raises(CosmosError) as caught:
        run(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT TOP 3 c['a b'].x AS \"y z\" FROM c JOIN t IN c.tags WHERE c.a OR (NOT c.b AND c.n IN (1))",
        "SELECT VALUE {'a': [1, null, undefined, -c.x]} FROM c WHERE c.x BETWEEN 1 AND 2 ORDER BY c.x DESC, c.y ASC",
        "SELECT c.key, COUNT(1) AS n FROM c WHERE c.s LIKE 'a!%' ESCAPE '!' GROUP BY c.key",
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = @x) OFFSET 1 LIMIT 2",
        "SELECT VALUE c.a ? c.b : c.d ?? 1 FROM c",
    ],
)
def test_a_query_written_back_to_text_is_the_same_query(text):
    query = parse(text)
    assert parse(query_text(query)) == query


def test_the_condition_of_a_patch_is_a_query_without_select():
    assert holds("FROM c WHERE c.n = 1", {"n": 1})
    assert not holds("from c where c.n = 1", {"n": 2})
    with pytest.raises(BadRequest):
        holds("c.n = 1", {})


def plan(text):
    return query_plan(parse(text), {}, ALL_FEATURES)["queryInfo"]


def test_a_plain_query_needs_no_plan():
    assert not needs_plan(parse("SELECT c.id FROM c WHERE c.n > 1"))
    assert plan("SELECT c.id FROM c")["rewrittenQuery"] == ""


def test_a_plan_for_order_by_asks_for_keys_and_payload():
    info = plan("SELECT c.id FROM c WHERE c.n > 1 ORDER BY c.n DESC")
    rewritten = info["rewrittenQuery"].replace("{documentdb-formattableorderbyquery-filter}", "true")
    assert info["orderBy"] == ["Descending"]
    assert run(rewritten)[0] == {"orderByItems": [{"item": 2.5}], "payload": {"id": "2"}}


def test_a_plan_for_an_average_asks_for_sum_and_count():
    info = plan("SELECT VALUE AVG(c.n) FROM c WHERE c.n < 2")
    assert info["aggregates"] == ["Average"]
    assert run(info["rewrittenQuery"]) == [[{"item": {"sum": 1, "count": 2}}]]


def test_a_plan_for_offset_and_limit_reads_from_the_start_of_each_range():
    info = plan("SELECT * FROM c OFFSET 5 LIMIT 10")
    assert (info["offset"], info["limit"]) == (5, 10)
    assert info["rewrittenQuery"].endswith("OFFSET 0 LIMIT 15")


def test_a_plan_for_group_by_asks_for_keys_and_parts():
    info = plan("SELECT c.key, COUNT(1) AS n FROM c GROUP BY c.key")
    assert info["groupByAliasToAggregateType"] == {"key": None, "n": "Count"}
    assert run(info["rewrittenQuery"])[0] == {
        "groupByItems": [{"item": "a"}],
        "payload": {"key": "a", "n": {"item": 2}},
    }


def test_a_client_that_cannot_group_is_told_so():
    with pytest.raises(BadRequest, match="GroupBy"):
        query_plan(parse("SELECT c.key FROM c GROUP BY c.key"), {}, {"Aggregate"})
