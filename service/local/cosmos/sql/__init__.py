"""The query language: text to tree, tree to results."""

from service.local.cosmos.sql.execute import Executable
from service.local.cosmos.sql.parser import parse_condition


def holds(condition: str, document: object) -> bool:
    """Whether a condition such as `FROM c WHERE c.a = 1` is true for the document."""
    query = parse_condition(condition)
    return any(True for _ in Executable(query, {}).of_document(document))
