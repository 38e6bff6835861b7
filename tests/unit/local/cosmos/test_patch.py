"""Partial document update."""

import pytest

from service.local.cosmos.errors import BadRequest, PreconditionFailed
from service.local.cosmos.patch import apply_patch


def patched(document, *operations, **more):
    apply_patch(document, {"operations": list(operations)} | more, protected=("/key",))
    return document


def step(op, path, *value, **more):
    return {"op": op, "path": path} | ({"value": value[0]} if value else {}) | more


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        ({}, step("add", "/a", 1), {"a": 1}),
        ({"a": [1, 3]}, step("add", "/a/1", 2), {"a": [1, 2, 3]}),
        ({"a": [1]}, step("add", "/a/-", 2), {"a": [1, 2]}),
        ({"a": {"b": 1}}, step("set", "/a/c", 2), {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, step("set", "/a/0", 9), {"a": [9, 2]}),
        ({"a": 1}, step("replace", "/a", {"x": 1}), {"a": {"x": 1}}),
        ({"a": 1, "b": 2}, step("remove", "/a"), {"b": 2}),
        ({"a": [1, 2, 3]}, step("remove", "/a/1"), {"a": [1, 3]}),
        ({"a": 1}, step("incr", "/a", 2.5), {"a": 3.5}),
        ({}, step("incr", "/a", 2), {"a": 2}),
        ({"a": 1}, step("move", "/b", **{"from": "/a"}), {"b": 1}),
        ({"a": {"x y": 1}}, step("set", '/a/"x y"', 2), {"a": {"x y": 2}}),
    ],
    ids=str,
)
def test_each_operation_does_what_it_says(before, operation, after):
    assert patched(before, operation) == after


@pytest.mark.parametrize(
    "operation",
    [
        step("replace", "/missing", 1),
        step("remove", "/missing"),
        step("set", "/missing/deeper", 1),
        step("add", "/list/9", 1),
        step("incr", "/text", 1),
        step("incr", "/number", "1"),
        step("set", "/id", "other"),
        step("set", "/_etag", "x"),
        step("set", "/key", "other"),
        step("move", "/list", **{"from": "/missing"}),
        step("move", "/number/inside", **{"from": "/number"}),
        step("nonsense", "/a", 1),
        step("set", "a", 1),
        step("set", "/", 1),
        step("set", "/a"),
        "text",
    ],
    ids=str,
)
def test_what_cannot_be_done_is_400(operation):
    document = {"id": "a", "key": "k", "list": [1], "text": "x", "number": 1}
    with pytest.raises(BadRequest):
        patched(document, operation)


def test_a_condition_that_does_not_hold_is_412_and_one_that_does_lets_it_pass():
    document = {"status": "new"}
    with pytest.raises(PreconditionFailed):
        patched(document, step("set", "/a", 1), condition="FROM c WHERE c.status = 'old'")
    assert patched(document, step("set", "/a", 1), condition="from c where c.status = 'new'")["a"] == 1


@pytest.mark.parametrize("request_body", [None, {}, {"operations": []}, {"operations": [step("set", "/a", 1)] * 11}])
def test_a_patch_has_one_to_ten_operations(request_body):
    with pytest.raises(BadRequest):
        apply_patch({}, request_body)
