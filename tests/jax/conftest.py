"""Sets up JAX before anything imports it: four host devices, CPU only."""

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4".strip()
os.environ["JAX_PLATFORMS"] = "cpu"

import pytest
from tool import Tool


@pytest.fixture(scope="session")
def tool() -> Tool:
    """The program; without it there is nothing to test, so everything stops."""
    try:
        return Tool.find()
    except FileNotFoundError as error:
        pytest.exit(str(error), returncode=4)
