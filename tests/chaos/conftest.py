"""The fixtures of whole processes against a whole stack."""

from tests.integration.conftest import make_stack, sluice

__all__ = ["make_stack", "sluice"]
