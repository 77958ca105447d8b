"""A package, so that tests can share their helpers with no folder on `sys.path`."""
