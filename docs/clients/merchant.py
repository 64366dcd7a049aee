"""A merchant's program in Python 3.9 or later, without packages: it receives webhooks, reads events that it missed, and
unlocks a lock. Copy what you need. README.md beside it says how to run it."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

URL = os.environ.get("LOCKGATE_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("LOCKGATE_KEY", "")
SECRET = os.environ.get("WEBHOOK_SECRET", "")
MAX_TRIES = 5
MAX_BODY_BYTES = 64 * 1024


def verify(secret, headers, body, now=None):
    """Checks the signature of a webhook, over the bytes of its body as they came. Raises ValueError if it is wrong."""
    id, sent, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    # A replayed webhook has its old time.
    if abs((time.time() if now is None else now) - int(sent)) > 300:
        raise ValueError("the timestamp is over 5 min off")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{sent}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # While a secret is changed, a webhook has two signatures.
    if not any(hmac.compare_digest(expected, each.encode()) for each in given.split(" ")):
        raise ValueError("no signature fits")


# A webhook may come twice. A real program has these ids in its database, beside what it did with the events.
seen = set()


class Receiver(BaseHTTPRequestHandler):
    """Receives webhooks, and prints each event once."""

    def do_POST(self):
        length = min(int(self.headers.get("content-length", 0)), MAX_BODY_BYTES)
        body = self.rfile.read(length)
        try:
            verify(SECRET, self.headers, body)
        except ValueError as error:
            print(f"refused: {error}", file=sys.stderr, flush=True)
            self.answer(401)
            return
        event = json.loads(body)
        if event["event_id"] not in seen:
            handle(event)
        seen.add(event["event_id"])
        # Answered within 15 s, and only when the event is safe: any other answer makes the gateway try again.
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args):
        pass


def receive(port):
    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    print(f"receiving on port {port}", flush=True)
    server.serve_forever()


def handle(event):
    """What the shop does with an event: here it prints it."""
    what = event["reason"] if "ping_type" in event else event["type"]
    print(event["event_id"], event["mac_addr"], what, flush=True)


def call(path, method="GET", headers=None, body=None):
    """Calls the interface. A call is repeated when the gateway is busy or can't be reached."""
    authorization = "Basic " + base64.b64encode(f"{KEY}:".encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    for tries in range(1, MAX_TRIES + 1):
        request = Request(URL + path, data, {**(headers or {}), "authorization": authorization}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            if error.code != 429 and error.code < 500:
                return error.code, json.load(error)
            why, seconds = f"status {error.code}", float(error.headers.get("retry-after", tries))
        except (URLError, OSError) as error:
            why, seconds = str(error), tries
        if tries < MAX_TRIES:
            time.sleep(seconds)
    raise RuntimeError(f"{path}: {why}")


def read_events(file):
    """Reads all events that came after the cursor in the file, page by page, and stores the new cursor there."""
    cursor = ""
    if os.path.exists(file):
        with open(file) as stored:
            cursor = stored.read()
    while True:
        after = f"&after={quote(cursor)}" if cursor else ""
        status, page = call(f"/v1/events?limit=100{after}")
        if status == 410 and "oldest_cursor" in page:
            print("events were deleted for their age before they were read", file=sys.stderr)
            cursor = page["oldest_cursor"]
            continue
        if status != 200:
            raise RuntimeError(f"/v1/events: status {status}")
        for event in page["data"]:
            handle(event)
        if not page["data"]:
            return
        cursor = page["next_cursor"]
        # Replaced as a whole: a program that is killed here has the old cursor or the new one.
        with open(file + ".new", "w") as stored:
            stored.write(cursor)
        os.replace(file + ".new", file)


def unlock(mac, key):
    """Unlocks a lock. The key is one of yours for this rental, so that a repeated call opens the lock no second time."""
    headers = {"content-type": "application/json", "idempotency-key": key}
    status, command = call(f"/v1/locks/{mac}/commands", "POST", headers, {"type": "unlock"})
    if status != 202:
        raise RuntimeError(f"unlock: status {status}: {command}")
    print("command", command["id"], command["state"])


if __name__ == "__main__":
    task, *words = sys.argv[1:] or [""]
    if task == "receive":
        receive(int(words[0]))
    elif task == "events":
        read_events(words[0])
    elif task == "unlock":
        unlock(*words)
    else:
        sys.exit("expected: receive PORT, events FILE, or unlock MAC KEY")
