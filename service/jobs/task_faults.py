"""Errors of tasks, found again in the text that Spark makes of them."""

import re
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from service.errors import BadSettings, DeadLetterFlood, SetupFault, SluiceError
from service.jobs.faults import BadInput, first_line

SPARK_FAULTS: Final = (PySparkException, Py4JJavaError)
"""What Spark raises: its own errors, and what it has not made one of them."""
_RAISED: Final = re.compile(r"^(?:service\.[\w.]+\.)?(\w+): (.+)$", re.MULTILINE)
_OURS: Final[dict[str, type[SluiceError]]] = {
    "SetupFault": SetupFault,
    "Retry": SetupFault,
    "BadInput": BadInput,
    "DeadLetterFlood": DeadLetterFlood,
}


def fault_of(error: BaseException) -> SluiceError:
    """Ours where a task raised one of ours; else a sentence with the first line of what Spark says."""
    text = str(error)
    for name, message in reversed(_RAISED.findall(text)):
        if name == "BadSettings":
            return BadSettings([message])
        if name in _OURS:
            return _OURS[name](message)
    for name, sentence in _KNOWN.items():
        if name in text:
            return BadInput(sentence)
    return BadInput(f"Spark could not do it: {_telling_line(text) or first_line(error)}")


def _telling_line(text: str) -> str:
    """The last line of a task's traceback says what was raised; of Java's, the first."""
    lines = [line.strip() for line in text.partition("JVM stacktrace")[0].splitlines() if line.strip()]
    if "Traceback" in text:
        return lines[-1][:300]
    # Java's own begins below the line which says that something was called from Python.
    return next((line.removeprefix(": ")[:300] for line in lines if line.startswith(": ")), "")


_KNOWN: Final = {
    "OutOfMemoryError": "Spark ran out of memory: give the driver and executors more, or make the windows smaller.",
    "No space left on device": "a disk is full: Spark spills to SPARK_LOCAL_DIRS, and files are staged in TMPDIR.",
}
