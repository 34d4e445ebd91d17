"""Before the first step: which rows, which settings, what contradicts what, what is trained and how long it takes."""
