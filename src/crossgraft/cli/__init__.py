"""The command line, made from the options classes of ``crossgraft.options``.

``commands`` lists the commands as data with the verb that each calls; ``actions`` has those that are more than one verb.
"""
