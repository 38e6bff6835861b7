"""The query language: text to tree, tree to results."""


def holds(condition: str, document: object) -> bool:
    """Whether a condition such as `FROM c WHERE c.a = 1` is true for the document."""
    raise NotImplementedError(condition, document)
