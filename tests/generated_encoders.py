"""Hypothesis strategies for encoders of strings and binary."""

from __future__ import annotations

from hypothesis import strategies as st

from sieve.encoding.encoder import Encoder, Window
from sieve.encoding.split_points import Point, Splits
from tests.generated_values import image

SHORT = st.binary(max_size=4)
BYTES = st.one_of(
    SHORT,
    st.binary(max_size=20),
    st.text("ab", max_size=40).map(str.encode),
    st.builds(lambda a, b: a + b, st.just(b"shared-prefix/"), SHORT),
    st.builds(lambda a, n, b: a + b"\0" * n + b, SHORT, st.integers(0, 9), SHORT),
    st.builds(lambda a, n, b: a + b"\xff" * n + b, SHORT, st.integers(0, 9), SHORT),
)


@st.composite
def splits(draw, values):
    """Split points, with or without an alphabet, at random or close to some of the values."""
    near = st.builds(lambda value, cut, more: value[:cut] + more, values, st.integers(0, 30), SHORT)
    starts = draw(st.sets(st.one_of(near, BYTES).map(lambda s: s.rstrip(b"\0")), min_size=1))
    points = [Point(start, draw(st.integers(0, len(start)))) for start in sorted(starts)]
    alphabet = draw(st.one_of(st.just(b""), st.sets(st.integers(1, 255), max_size=127).map(sorted)))
    return Splits(tuple(points), bytes(alphabet))


@st.composite
def encoders(draw, values, kind="binary"):
    """Encoders of strings or binary, with split points; some use a common prefix."""
    prefix = draw(st.one_of(st.just(b""), values, SHORT))
    cut = values.map(lambda value: value.removeprefix(prefix))
    return Encoder(kind, prefix, draw(splits(cut)))


def encoders_for(kind, values):
    """Encoders that a build could choose for a run of the given values.

    In some cases, the encoder's prefix, split points and window suit the values.
    """
    if kind.name.startswith("decimal(38"):
        low = st.sampled_from(kind.values).map(lambda value: value - (value > 0))
        windows = st.builds(Window, low, st.sampled_from([0, 20, 63, 64]))
        return st.builds(Encoder, st.just(kind.name), window=st.one_of(st.none(), windows))
    if not kind.of_bytes:
        return st.just(Encoder.for_type(kind.name))
    bound = st.sampled_from([image(value) for value in kind.values])
    kinds = [st.builds(Encoder.for_type, st.just(kind.name), bound, bound)]
    kinds.append(encoders(bound, kind.name))
    present = [image(value) for value in values if value is not None]
    if present:
        kinds.append(st.just(Encoder.for_type(kind.name, min(present), max(present))))
    return st.one_of(kinds)
