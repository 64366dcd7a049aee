<?php
// A merchant's program in PHP 8.1 or later, without packages: it receives webhooks, reads events that it missed, and
// unlocks a lock. Copy what you need. README.md beside it says how to run it.

const MAX_TRIES = 5;

function setting(string $name, string $default): string
{
    return getenv($name) ?: $default;
}

/** Checks the signature of a webhook, over the bytes of its body as they came. Throws an Exception if it is wrong. */
function verify(string $secret, array $headers, string $body, ?int $now = null): void
{
    [$id, $time, $given] = array_map(fn ($name) => $headers["webhook-$name"] ?? '', ['id', 'timestamp', 'signature']);
    // A replayed webhook has its old time.
    if (abs(($now ?? time()) - (int) $time) > 300) throw new Exception('the timestamp is over 5 min off');
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$time.$body", $key, true));
    // While a secret is changed, a webhook has two signatures.
    foreach (explode(' ', $given) as $each) if (hash_equals($expected, $each)) return;
    throw new Exception('no signature fits');
}

/** Answers one webhook, and prints its event. A web server calls this file for each request. */
function receive(): void
{
    $body = file_get_contents('php://input');
    try {
        verify(setting('WEBHOOK_SECRET', ''), array_change_key_case(getallheaders()), $body);
    } catch (Exception $error) {
        file_put_contents('php://stderr', "refused: {$error->getMessage()}\n");
        http_response_code(401);
        return;
    }
    $event = json_decode($body, true);
    // A webhook may come twice. A real program has the ids in its database, beside what it did with the events.
    $seen = setting('SEEN_FILE', sys_get_temp_dir() . '/lockgate-seen');
    $ids = is_file($seen) ? file($seen, FILE_IGNORE_NEW_LINES) : [];
    if (!in_array($event['event_id'], $ids, true)) {
        handle($event, 'php://stderr');
        file_put_contents($seen, "{$event['event_id']}\n", FILE_APPEND | LOCK_EX);
    }
    // Answered within 15 s, and only when the event is safe: any other answer makes the gateway try again.
    http_response_code(204);
}

/** What the shop does with an event: here it prints it. */
function handle(array $event, string $output): void
{
    $what = isset($event['ping_type']) ? $event['reason'] : $event['type'];
    file_put_contents($output, "{$event['event_id']} {$event['mac_addr']} $what\n");
}

/** Calls the interface: [status, body]. A call is repeated when the gateway is busy or can't be reached. */
function call(string $path, string $method = 'GET', array $headers = [], ?array $body = null): array
{
    $headers[] = 'authorization: Basic ' . base64_encode(setting('LOCKGATE_KEY', '') . ':');
    $http = ['method' => $method, 'header' => $headers, 'ignore_errors' => true, 'timeout' => 60];
    if ($body !== null) $http['content'] = json_encode($body);
    for ($tries = 1; $tries <= MAX_TRIES; $tries += 1) {
        $http_response_header = [];
        $url = setting('LOCKGATE_URL', 'http://127.0.0.1:8080') . $path;
        $answer = @file_get_contents($url, false, stream_context_create(['http' => $http]));
        $status = (int) (explode(' ', $http_response_header[0] ?? '')[1] ?? 0);
        if ($status !== 0 && $status !== 429 && $status < 500) return [$status, json_decode($answer, true)];
        if ($tries < MAX_TRIES) sleep(retryAfter($http_response_header) ?? $tries);
    }
    throw new Exception("$path: status $status");
}

/** The seconds of the header Retry-After; null if there is none. */
function retryAfter(array $headers): ?int
{
    foreach ($headers as $line) if (preg_match('/^retry-after:\s*(\d+)/i', $line, $found)) return (int) $found[1];
    return null;
}

/** Reads all events that came after the cursor in the file, page by page, and stores the new cursor there. */
function readEvents(string $file): void
{
    $cursor = is_file($file) ? file_get_contents($file) : '';
    while (true) {
        [$status, $page] = call('/v1/events?limit=100' . ($cursor === '' ? '' : '&after=' . rawurlencode($cursor)));
        if ($status === 410 && isset($page['oldest_cursor'])) {
            file_put_contents('php://stderr', "events were deleted for their age before they were read\n");
            $cursor = $page['oldest_cursor'];
            continue;
        }
        if ($status !== 200) throw new Exception("/v1/events: status $status");
        foreach ($page['data'] as $event) handle($event, 'php://stdout');
        if ($page['data'] === []) return;
        $cursor = $page['next_cursor'];
        // Replaced as a whole: a program that is killed here has the old cursor or the new one.
        file_put_contents("$file.new", $cursor);
        rename("$file.new", $file);
    }
}

/** Unlocks a lock. The key is one of yours for this rental, so that a repeated call opens the lock no second time. */
function unlock(string $mac, string $key): void
{
    $headers = ['content-type: application/json', "idempotency-key: $key"];
    [$status, $command] = call("/v1/locks/$mac/commands", 'POST', $headers, ['type' => 'unlock']);
    if ($status !== 202) throw new Exception("unlock: status $status: " . json_encode($command));
    echo "command {$command['id']} {$command['state']}\n";
}

if (PHP_SAPI !== 'cli') receive();
else match ($argv[1] ?? '') {
    'events' => readEvents($argv[2]),
    'unlock' => unlock($argv[2], $argv[3]),
    default => exit("expected: events FILE, or unlock MAC KEY\n"),
};
