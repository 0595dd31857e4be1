"""Reaching models over HTTP. `wire` says what a request and a reply look like, `client` sends and retries."""
