"""The table of decision 3."""

import pytest

from service.sink.outcomes import Step, Verdict, judge_operation, judge_request, may_mean_no_bulk, setup_text


@pytest.mark.parametrize(
    ("status", "sub_status", "operation", "request_"),
    [
        (0, 0, Verdict.RETRY, Verdict.RETRY),
        (408, 0, Verdict.RETRY, Verdict.RETRY),
        (410, 1000, Verdict.RETRY, Verdict.RETRY),
        (410, 1002, Verdict.MOVED, Verdict.MOVED),
        (410, 1007, Verdict.MOVED, Verdict.MOVED),
        (424, 0, Verdict.RETRY, Verdict.RETRY),
        (449, 0, Verdict.RETRY, Verdict.RETRY),
        (500, 0, Verdict.RETRY, Verdict.RETRY),
        (503, 0, Verdict.RETRY, Verdict.RETRY),
        (429, 3200, Verdict.THROTTLED, Verdict.THROTTLED),
        (403, 3, Verdict.RETRY, Verdict.RETRY),
        (413, 3402, Verdict.RETRY, Verdict.RETRY),
        (404, 1002, Verdict.RETRY, Verdict.RETRY),
        (400, 0, Verdict.DEAD, Verdict.SPLIT),
        (413, 0, Verdict.DEAD, Verdict.SPLIT),
        (403, 1014, Verdict.DEAD, Verdict.SPLIT),
        (409, 0, Verdict.DEAD, Verdict.SPLIT),
        (400, 1024, Verdict.SETUP, Verdict.SETUP),
        (401, 0, Verdict.SETUP, Verdict.SETUP),
        (403, 5300, Verdict.SETUP, Verdict.SETUP),
        (404, 1003, Verdict.SETUP, Verdict.SETUP),
        (501, 0, Verdict.RETRY, Verdict.SPLIT),
        (302, 0, Verdict.RETRY, Verdict.RETRY),
    ],
)
def test_statuses_of_an_upsert(status, sub_status, operation, request_):
    assert judge_operation(Step.UPSERT, status, sub_status) is operation
    assert judge_request(status, sub_status) is request_


def test_a_success_for_a_whole_request_says_nothing_about_its_operations():
    assert judge_request(200) is Verdict.RETRY


@pytest.mark.parametrize(
    ("step", "status", "verdict"),
    [
        (Step.UPSERT, 201, Verdict.DONE),
        (Step.DELETE, 204, Verdict.DONE),
        (Step.DELETE, 404, Verdict.DONE),
        (Step.CREATE, 409, Verdict.CONFLICT),
        (Step.REPLACE, 412, Verdict.CONFLICT),
        (Step.REPLACE, 404, Verdict.CONFLICT),
        (Step.REPLACE, 409, Verdict.DEAD),
        (Step.DELETE, 412, Verdict.CONFLICT),
        (Step.READ, 404, Verdict.CONFLICT),
        (Step.READ, 200, Verdict.DONE),
    ],
)
def test_the_usual_answers_of_guarded_steps(step, status, verdict):
    assert judge_operation(step, status) is verdict


def test_only_some_refusals_may_come_from_a_service_without_bulk():
    assert may_mean_no_bulk(400)
    assert may_mean_no_bulk(501)
    assert not may_mean_no_bulk(413)
    assert not may_mean_no_bulk(404)


def test_set_up_faults_say_what_to_do():
    assert "COSMOS_CONNSTRING" in setup_text(401, 0)
    assert "403/5300" in setup_text(403, 5300)
    assert "COSMOS_CONTAINER" in setup_text(404, 0)
    assert "anew" in setup_text(400, 1024)
