"""A source as a tree of numbered nodes: ``tree`` is the whole; ``folders``, ``shards``, ``control`` its parts."""
