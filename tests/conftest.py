"""What holds for every test: no settings leak in, and hypothesis runs as its profile says."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test must see the defaults, not what the developer has set. Where downloads are cached is no
# setting of the product, and fetching them again for each test would help nobody.
KEPT = {
    "FAIRSTREAM_CACHE",
    "FAIRSTREAM_CHAOS_FAULTS",
    "FAIRSTREAM_CHAOS_SEED",
    "FAIRSTREAM_MAVEN_MIRROR",
    "FAIRSTREAM_TEST_PROFILE",
}

for _name in [name for name in os.environ if name.startswith("FAIRSTREAM_") and name not in KEPT]:
    del os.environ[_name]

# A shell starts what it puts into the background with SIGINT ignored, and that is inherited: the programs under test
# could then not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.register_profile("nightly", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("FAIRSTREAM_TEST_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# The files that take longest (a minute or two each), about the longest first. Two workers take one file after the
# other: begun last, such a file would keep one of them busy when the other has nothing left to do. Beside the demo,
# which plays in real time, is one that mostly waits; the third comes after the demo, by the same worker.
LONGEST = (
    "tests/acceptance/test_demo.py",
    "tests/integration/test_client_worker.py",
    "tests/integration/faults/test_faults.py",
    "tests/integration/test_local_kafka.py",
    "tests/integration/test_broken_builds.py",
    "tests/integration/test_trouble_outage.py",
    "tests/integration/test_rebalance.py",
    "tests/integration/test_runtime_start.py",
    "tests/integration/test_audit.py",
    "tests/integration/test_migrate.py",
    "tests/integration/test_security_roles.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Integration tests last: what fails in a second should not wait for what takes minutes. But see `LONGEST`."""
    places = [Path(__file__).parent.parent / name for name in LONGEST]
    gone = [str(place) for place in places if place.parent.is_dir() and not place.exists()]  # mutants have few folders
    assert not gone, f"LONGEST names what is not there: {gone}"
    two_at_a_time = "PYTEST_XDIST_WORKER" in os.environ

    def place(item: pytest.Item) -> int:
        file, _, _ = item.nodeid.partition("::")
        if two_at_a_time and file in LONGEST:
            return LONGEST.index(file) - len(LONGEST)
        return int(any(item.iter_markers("integration")))

    items.sort(key=place)
