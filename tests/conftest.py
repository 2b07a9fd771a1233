"""Property tests try the same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones."""

import os
import signal

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)  # machines are shared, and kernels compile
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell script put in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
