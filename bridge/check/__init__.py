"""`responses-acp check`: looks at everything that an answer needs, and says what is wrong where."""
