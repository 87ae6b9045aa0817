"""Sends one sign-in email through Postern. Needs Python 3.9 or newer, and no packages."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone


class PosternError(Exception):
    """Postern refused the email (`status` 400 to 429), or did not answer (`status` None or 503)."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


def send(to, type, url, expires_at, **fields):
    """Returns the id of the email once it is on disk. `fields` are those of an invitation, `locale` and `code`."""
    body = {"to": to, "type": type, "url": url, "expiresAt": expires_at.isoformat(), **fields}
    # The same key for each try, so that a repeated request queues nothing twice.
    idempotency_key = str(uuid.uuid4())
    for pause in (0.2, 0.6, None):
        try:
            return _post(body, idempotency_key)
        except PosternError as error:
            if pause is None or error.status not in (None, 503):
                raise
            time.sleep(pause)


def _post(body, idempotency_key):
    request = urllib.request.Request(
        os.environ["POSTERN_BASE_URL"] + "/v1/email",
        json.dumps(body).encode(),
        {
            "Authorization": "Bearer " + os.environ["POSTERN_DELIVERY_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.headers["Email-Id"]
    except urllib.error.HTTPError as refusal:
        raise PosternError(refusal.read().decode(), refusal.code) from None
    except OSError as error:  # no answer: unreachable, reset, or timed out
        raise PosternError(str(error)) from None


if __name__ == "__main__":
    expires_at = datetime.now(timezone.utc) + timedelta(minutes=15)
    print(send("ada@example.com", "magic_link", "https://app.example.com/auth?token=demo-1234", expires_at))
