from tests.integration.conftest import make_stack, preload, sluice

__all__ = ["make_stack", "preload", "sluice"]
