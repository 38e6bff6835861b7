from tests.integration.conftest import make_stack, otlp, preload, sluice

__all__ = ["make_stack", "otlp", "preload", "sluice"]
