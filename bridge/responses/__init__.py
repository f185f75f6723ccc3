"""The model side: the OpenAI Responses API over HTTP."""
