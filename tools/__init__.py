"""What the model can do with files, processes and people; table.py names every tool."""
