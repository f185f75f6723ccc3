"""A recording, played against this version."""
