"""The switch that accepts changed output: `make golden`."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write what the program says now into tests/golden; read the diff",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected output is to be written instead of compared."""
    return bool(request.config.getoption("--rewrite-golden", default=False))
