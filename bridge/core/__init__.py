"""What the bridge decides, without doing anything: no I/O, no clock, no randomness, no waiting."""
