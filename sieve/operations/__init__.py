"""Operations on indexes. Most modules implement one statement: create, refresh, vacuum."""
