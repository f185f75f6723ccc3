"""Which proxy leads to a server, as the environment and the system's settings say.

It must not know the HTTP library. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY in capitals or
small letters; on macOS the system's settings where none of them is set.

Rule 1: no proxy stands between this machine and itself.
Rule 2: NO_PROXY holds hosts, domains with or without a dot or star in front, addresses, networks
such as 10.0.0.0/8, and * for every host. An entry that is none of these fits no host.
"""

import os
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

_SYSTEM = "this system"


def is_here(host: str) -> bool:
    """The host is this machine."""
    return host in ("localhost", "::1") or host.startswith("127.")


def proxy_to(base_url: str) -> str | None:
    """The URL of the proxy to this server; None where there is none in between."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    found = getproxies()
    url = found.get(parts.scheme) or found.get("all")
    if not url or is_here(host) or _is_spared(host, found.get("no", "")) or proxy_bypass(host):
        return None
    return url if "://" in url else f"http://{url}"


def source_of_proxy(base_url: str) -> str:
    """The variable that names the proxy to this server, or whatever else does."""
    names = (f"{urlsplit(base_url).scheme.upper()}_PROXY", "ALL_PROXY")
    return next((name for name in names if _variable(name)), _SYSTEM)


def checked(url: str) -> str:
    """The URL of a proxy; ValueError where it names no host and port."""
    parts = urlsplit(url)
    if not parts.hostname or parts.hostname.isspace() or parts.port == 0:
        raise ValueError("no host and port")
    return url


def is_socks(source: str) -> str:
    """The complaint about a proxy that needs what is not installed."""
    return (
        f"{source} names a SOCKS proxy, which needs the package socksio: "
        "install it beside responses-acp, or unset the variable"
    )


def is_no_url(source: str) -> str:
    """The complaint about a proxy whose URL is none."""
    return f"{source} cannot be used: it must hold a URL such as http://HOST:PORT, or be unset"


def _variable(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower(), "")


def _is_spared(host: str, entries: str) -> bool:
    """Whether NO_PROXY names the host."""
    return any(_names(entry.strip().lower(), host) for entry in entries.split(","))


def _names(entry: str, host: str) -> bool:
    if entry == "*":
        return True
    domain = entry.rpartition("://")[2].removeprefix("*").removeprefix(".").strip("[]")
    if not domain:
        return False
    return host == domain or host.endswith(f".{domain}") or _is_inside(host, domain)


def _is_inside(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
