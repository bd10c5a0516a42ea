import pytest


@pytest.fixture(autouse=True)
def exact(no_jitter: None) -> None:
    """Diagonal blocks take no jitter and the dense twin's do."""
