"""The command line, made from the options classes of ``crossgraft.options``.

``commands`` lists the commands as data, ``actions`` says what each calls and prints; ``parsing`` and ``help_pages`` are the same
for all of them.
"""
