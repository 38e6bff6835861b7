"""Spark's Python daemon with our modules loaded: workers are forked from it, and begin without importing them again.

Used where driver and workers share one Python (`spark.python.daemon.module`); it halves the time of short jobs.
"""

import pyspark.daemon

import service.jobs.cosmos_reader
import service.jobs.records
import service.jobs.source
import service.jobs.writer  # noqa: F401 - loaded for the workers

if __name__ == "__main__":
    pyspark.daemon.manager()
