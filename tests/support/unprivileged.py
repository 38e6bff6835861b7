"""Commands for which permissions count, also where the tests run as root."""

import os
import shutil


def unprivileged() -> list[str]:
    """Begins a command that may read only what its user may: root then keeps its files, but no power over others'.

    (Not another user: Python itself may lie in a home that only root can enter.)
    """
    if os.geteuid() != 0:
        return []
    return [str(shutil.which("setpriv")), "--bounding-set=-dac_override,-dac_read_search"]
