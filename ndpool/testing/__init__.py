"""For backend authors: the answers in plain loops, and a table of cases that public bug reports left behind.

Nothing in here imports an engine, so that a fault in one can't hide in the other.
"""
