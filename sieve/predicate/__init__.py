"""A predicate tree and what indexes prove of it: might match, or cannot match."""
