"""Logs: JSON lines in a container, readable lines on a terminal. No secrets, no bodies."""

import logging
import sys
from typing import Literal

import structlog

LogFormat = Literal["auto", "json", "text"]


def configure(level: str = "info", log_format: LogFormat = "auto") -> None:
    """Send structlog and the standard library's warnings to standard error in one form."""
    number = logging.getLevelNamesMapping()[level.upper()]
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if text else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    # The SDKs log each of their retries as a warning or an error with a traceback; what matters of it we say ourselves.
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)
    logging.getLogger("azure").setLevel(logging.CRITICAL if number > logging.DEBUG else logging.INFO)
