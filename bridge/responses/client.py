"""An HTTP client for one way to a server: its certificates, its proxy, its connections.

It must not know what is asked of the server.

Rule 1: what cannot be built is a ConfigError that names the setting, and no value of it.
Rule 2: an address is never followed elsewhere: the key is for the configured one.
"""

import os
import ssl
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import cast
from urllib.parse import urlsplit

import httpx

from bridge.errors import ConfigError
from bridge.responses import proxies
from bridge.responses.answer import Endpoint
from bridge.responses.lines import Lines
from bridge.responses.proxies import proxy_to, source_of_proxy
from tools.frozen import frozen

if find_spec("sniffio") is None:
    # httpcore looks for it with each request and each lock, all along the search path.
    sys.modules["sniffio"] = cast("ModuleType", None)

KEEPALIVE_SECONDS = 60.0
_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS
)


@frozen
class Way:
    """All that matters for a connection; endpoints with the same one share their connections."""

    is_secure: bool
    ca_file: str | None
    proxy: str | None
    proxy_source: str
    """What names the proxy."""


def way_to(endpoint: Endpoint) -> Way:
    """The way to this endpoint, as the environment has it now."""
    url = endpoint.base_url
    return Way(
        urlsplit(url).scheme == "https", endpoint.ca_file, proxy_to(url), source_of_proxy(url)
    )


def new_client(way: Way, lines: Lines, inner: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    """A client whose connections are made by lines; inner: answers instead, without a network."""
    wire = inner or _Wire(way, lines)
    return httpx.AsyncClient(transport=wire, follow_redirects=False, trust_env=False)


class _Wire(httpx.AsyncHTTPTransport):
    """The library's own transport; raises ConfigError where the way cannot be gone."""

    def __init__(self, way: Way, lines: Lines) -> None:
        try:
            tls = trusted(way.ca_file) if way.is_secure else None
            proxy = _proxy(way.proxy, way.ca_file) if way.proxy else None
            super().__init__(verify=tls or False, proxy=proxy, limits=_LIMITS)
        except ImportError:
            raise ConfigError(proxies.is_socks(way.proxy_source)) from None
        except (ValueError, httpx.InvalidURL):
            raise ConfigError(proxies.is_no_url(way.proxy_source)) from None
        # The library hands this to its pool of connections nowhere; tests hold that it arrives.
        wanted = lines if way.is_secure or way.proxy else lines.plain()
        self._pool._network_backend = wanted  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _proxy(url: str, ca_file: str | None) -> httpx.Proxy:
    """The proxy at this URL; ValueError where it is none."""
    secure = urlsplit(proxies.checked(url)).scheme == "https"
    return httpx.Proxy(url, ssl_context=trusted(ca_file) if secure else None)


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Trusts what the system trusts, and what the user adds to that; ConfigError."""
    import truststore  # noqa: PLC0415 (for https only)

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for setting, file in (("ca_file", ca_file), ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE"))):
        try:
            context.load_verify_locations(file) if file else None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            text = f"{setting} cannot be used ({reason}): name a file of PEM certificates"
            raise ConfigError(text) from None
    return context
