"""The public verbs, one file each: everything a command does, from its options to what it returns and writes."""
