"""How fast the agent is, beside the least that Python can do: `python -m tests.bench`."""
