"""The built site: VICINAL_SITE, or what `make docs` or `make docs-quick` wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the folder of the site; without one the tests are skipped with a reason."""
    places = [Path(os.environ["VICINAL_SITE"])] if "VICINAL_SITE" in os.environ else []
    places += [ROOT / "out" / "docs-quick", ROOT / "out" / "docs"]
    for place in places:
        if (place / "index.html").exists():
            return place
    pytest.skip("there is no site in out/: `make docs-quick` or `make docs` builds it")
