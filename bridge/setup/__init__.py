"""`responses-acp setup`: a configuration from a few questions, and the entry for an editor."""
