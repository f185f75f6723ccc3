"""`responses-acp demo`: the real agent between a scripted model and a small terminal client."""
