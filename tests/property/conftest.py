"""How generated tests run."""

from __future__ import annotations

from hypothesis import settings

# No deadline: how long one example takes says more about the machine than about the code.
settings.register_profile("sieve", deadline=None, print_blob=True)
settings.load_profile("sieve")
