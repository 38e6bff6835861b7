"""The ops page at `/`: one file that asks `/status`, and the headers that let it do nothing else."""

import base64
import hashlib
import re
from pathlib import Path

PAGE = Path(__file__).with_name("dashboard.html")


def load() -> tuple[bytes, dict[str, str]]:
    """The page, and its headers."""
    text = PAGE.read_text(encoding="utf-8")
    return text.encode(), {
        "Cache-Control": "no-store",
        "Content-Security-Policy": content_security_policy(text),
        "Content-Type": "text/html; charset=utf-8",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


def content_security_policy(text: str) -> str:
    """Only the style and the script that stand in the page, known by their digests; only this server is asked.

    Trusted types: the browser itself refuses to make HTML or a script from a string, so that what `/status` says can
    be shown as text only. `data:` is for the icon, which would else be asked for.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_digests('style', text)}",
            f"script-src {_digests('script', text)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digests(tag: str, text: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in found)
