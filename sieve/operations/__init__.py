"""One operation on indexes a module, as users name them: create, refresh, vacuum, check."""
