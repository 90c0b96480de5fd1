"""Operations on indexes, one per module, named as users name them: create, refresh, vacuum."""
