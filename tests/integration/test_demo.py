"""The demo: what a newcomer runs first."""

import subprocess
import sys


def test_the_demo_ends_with_a_sum_that_adds_up():
    done = subprocess.run(
        [sys.executable, "-m", "service", "demo", "--seconds", "6", "--rate", "1500"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it adds up" in done.stdout
    assert "its page: http://127.0.0.1:" in done.stdout
    assert "5 dead-lettered" in done.stdout
