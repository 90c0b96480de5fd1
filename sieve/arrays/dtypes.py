"""Names for the types of numpy arrays in Sieve's code.

Each name tells the dtype of an array and the meaning of the array's elements.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
"""A Boolean for each element of a list, such as for each file of a table."""

Codes: TypeAlias = npt.NDArray[np.int64]
"""Key codes: column values, encoded as integers that sort like the values."""

CodeIntervals: TypeAlias = npt.NDArray[np.int64]
"""A set of key codes, int64[k, 2]: the first and the last code of each interval, both inclusive."""

Integers: TypeAlias = npt.NDArray[np.int64]
"""Integers without a fixed meaning."""

Counts: TypeAlias = npt.NDArray[np.int64]
"""Counts, such as row counts. Also the numbers of files in an index version (slots); -1 is none."""

Numbers: TypeAlias = npt.NDArray[np.float64]
"""Floating-point numbers, such as shares, prices and sizes."""

Hashes: TypeAlias = npt.NDArray[np.uint64]
"""64-bit hashes of keys."""

Words: TypeAlias = npt.NDArray[np.uint64]
"""64-bit words, for packing and unpacking bits."""

Slots: TypeAlias = npt.NDArray[np.uint64]
"""Positions of cells in the cell array of a hash map."""

Places: TypeAlias = npt.NDArray[np.intp]
"""Positions in another array."""

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Start positions of elements in a buffer, counted in bytes or in lines."""

Ordinals: TypeAlias = npt.NDArray[np.int32]
"""Ordinals of locations: the number that identifies each location in its run."""

States: TypeAlias = npt.NDArray[np.int8]
"""The `FileState` of each file."""

Weights: TypeAlias = npt.NDArray[np.float32]
"""The cost of reading each location; 1 is the cost of a location of mean size."""
