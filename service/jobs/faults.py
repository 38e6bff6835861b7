"""What ends a job, beyond the errors of the service."""

from service.errors import Fatal


class BadInput(Fatal):
    """The job cannot be done with what it was given: files, options, or the machine. Nothing was written."""

    exit_code = 1


class Incomplete(Fatal):
    """A part was left out or is not done yet; what is done stays done, and running again goes on from there."""

    exit_code = 3


def first_line(fault: BaseException) -> str:
    """For messages: SDKs and Spark write many lines."""
    lines = (str(fault) or type(fault).__name__).strip().splitlines()
    return lines[0][:300] if lines else type(fault).__name__
