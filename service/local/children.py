"""Child processes that do not outlive their parent."""

import ctypes
import signal
import sys
from collections.abc import Callable


def end_with_parent() -> Callable[[], None] | None:
    """For `preexec_fn`: asks Linux to end the child when this process dies, however it dies. None elsewhere."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec little may be done

    def ask() -> None:
        prctl(1, signal.SIGTERM)  # 1 = PR_SET_PDEATHSIG, linux/prctl.h

    return ask
