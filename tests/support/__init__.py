"""Parts that several kinds of tests use."""
