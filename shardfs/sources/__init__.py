"""Where bytes come from: one module a kind of source."""
