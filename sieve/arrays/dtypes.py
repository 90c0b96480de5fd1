"""Names for the types of arrays in the code.

Each name defines a dtype and the meaning of its numbers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
"""A flag for each element, such as each file of a table."""

Codes: TypeAlias = npt.NDArray[np.int64]
"""Key codes: values in encoded form, in the order of the values."""

CodeIntervals: TypeAlias = npt.NDArray[np.int64]
"""Sets of codes, int64[k, 2]: the first and the last code of each interval, both included."""

Integers: TypeAlias = npt.NDArray[np.int64]
"""Integers of any meaning."""

Counts: TypeAlias = npt.NDArray[np.int64]
"""Counts, such as numbers of rows; or positions among slots, where -1 means no position."""

Numbers: TypeAlias = npt.NDArray[np.float64]
"""Shares, prices and sizes."""

Hashes: TypeAlias = npt.NDArray[np.uint64]
"""64-bit hashes of keys."""

Words: TypeAlias = npt.NDArray[np.uint64]
"""64-bit words, for packing and unpacking bits."""

Slots: TypeAlias = npt.NDArray[np.uint64]
"""Positions in the table of a hash map."""

Places: TypeAlias = npt.NDArray[np.intp]
"""Positions in another array."""

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Start positions in a buffer, in bytes or lines."""

Ordinals: TypeAlias = npt.NDArray[np.int32]
"""Locations of a run, by their number."""

States: TypeAlias = npt.NDArray[np.int8]
"""`FileState` of each file."""

Weights: TypeAlias = npt.NDArray[np.float32]
"""Costs of reading each location, in reads of a location of mean size."""
