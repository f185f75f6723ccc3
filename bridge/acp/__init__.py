"""The editor's side: the Agent Client Protocol over stdio."""
