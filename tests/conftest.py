"""Here so that pytest puts this folder on the path: tests import `fakes.…`."""
