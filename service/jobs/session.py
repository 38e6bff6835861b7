"""The Spark session of a job."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from service.jobs.faults import BadInput, first_line
from service.jobs.options import EngineOptions

_SETTINGS: Final = {
    "spark.app.name": "sluice",
    "spark.sql.session.timeZone": "UTC",
    # A copy of a task that is only slow would spend the budget twice.
    "spark.speculation": "false",
    # 2000 events of 1 MB, the largest a hub takes, would be 2 GB in one batch: the bytes are limited too (Spark 4.1+).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "service.jobs.daemon",
}


@contextmanager
def session(options: EngineOptions) -> Iterator[SparkSession]:
    """The session that is running already (spark-submit, a notebook, a test), else one of our own, stopped at the end.
    Raises BadInput where Spark cannot be started.
    """
    try:
        running = SparkSession.active()  # of this thread, or the default one
    except PySparkException:
        running = None
    if running is not None:
        yield running
        return
    spark = start(options)
    try:
        yield spark
    finally:
        spark.stop()


def start(options: EngineOptions, more: dict[str, str] | None = None) -> SparkSession:
    """A new session."""
    _find_java()
    # Workers take `python3` off the PATH otherwise, which has none of our packages unless a venv is active.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has chosen the master already
    master = options.master or ("" if submitted else "local[*]")
    settings = _SETTINGS | (_LOCAL_SETTINGS if master.startswith("local") else {}) | (more or {})
    settings["spark.ui.showConsoleProgress"] = str(sys.stderr.isatty()).lower()
    builder = SparkSession.builder
    if master:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as fault:
        raise BadInput(
            f"Spark did not start ({first_line(fault)}). Java 17 or newer is needed; see docs/jobs.md"
        ) from fault
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def is_local(spark: SparkSession) -> bool:
    """Whether driver and tasks share one machine, and so its disk."""
    return str(spark.sparkContext.master).startswith("local")


def parallelism(spark: SparkSession, options: EngineOptions) -> int:
    """How many tasks to make where one per core is wanted."""
    return options.tasks or max(1, spark.sparkContext.defaultParallelism)


def _find_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise BadInput(
            f"JAVA_HOME is {home}, but there is no bin/java in it. Point it at a Java of version 17 or newer."
        )
    if not home and shutil.which("java") is None:
        raise BadInput(
            "Spark needs Java 17 or newer, and there is no `java` on the PATH. Install one, or set JAVA_HOME."
        )
