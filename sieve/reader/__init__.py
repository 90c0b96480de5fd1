"""Opening a version and answering look-ups from its cached parts."""
