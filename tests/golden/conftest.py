"""The switch that accepts changed output: `make golden`."""

from collections.abc import Iterator

import pytest

from fakes.drawn import drawn_once


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


@pytest.fixture(scope="module", autouse=True)
def _each_chart_is_drawn_once(pytestconfig: pytest.Config) -> Iterator[None]:
    with drawn_once(pytestconfig):
        yield
