"""One server for all tests that neither end it nor want other settings."""

from collections.abc import Iterator

import pytest
from system.serving.running import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("served"))
    yield server
    server.stop()
